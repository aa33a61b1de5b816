"""What this room has of KIP-46."""
