"""Deletion, growth, preferred leaders and shutdown, which no profile is named for."""
