"""The gate: adapters, stories, generation, faults, reports and the command line."""
