"""What every answer has in common: its document, its exit code, and how it looks."""
