"""KAFKA-4485: what a leader says of its followers, and what it would say with a mistake."""
