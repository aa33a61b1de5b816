"""The judge of observations: KAFKA-4485 held against what brokers and controllers say of it."""
