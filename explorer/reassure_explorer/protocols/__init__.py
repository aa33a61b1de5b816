"""What is explored of each protocol: its standard scopes, and the promises that it breaks."""
