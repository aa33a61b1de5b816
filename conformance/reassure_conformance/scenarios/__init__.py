"""Scenarios: files of commands and answers, told to the model or to a real controller."""
