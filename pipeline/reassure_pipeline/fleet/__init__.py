"""What is told beyond verdicts: reassignments, replication, elections, controllers, over time."""
