"""The accepting rules of Kafka 2.4 to 3.9, which no controller is driven under."""
