"""What this room has of KAFKA-4485."""
