"""An audit: archives judged from beginning to end, and the report of that."""
