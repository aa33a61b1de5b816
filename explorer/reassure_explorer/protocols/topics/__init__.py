"""What this room has of deletion, growth and preferred leaders."""
