"""The protocols, a folder each, named like its document."""
