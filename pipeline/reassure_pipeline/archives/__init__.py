"""Archives of logs: which files make one history, and where judging of it begins."""
