"""What the lab has of each protocol."""
