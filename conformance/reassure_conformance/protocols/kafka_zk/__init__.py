"""What this room has of Kafka's own controllers."""
