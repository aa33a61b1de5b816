"""What mutants of KAFKA-42's reference controller are looked for in."""
