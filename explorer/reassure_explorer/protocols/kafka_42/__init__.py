"""What this room has of KAFKA-42."""
