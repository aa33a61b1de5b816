"""What this room has of KIP-236's legacy route."""
