"""Worlds of deletions, preferred elections and shutdowns, which no profile is named for."""
