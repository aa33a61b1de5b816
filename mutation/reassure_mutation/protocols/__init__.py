"""What is explored of each protocol to find the mutants that can be killed."""
