"""Logs that grow: followed, judged and told as they are written."""
