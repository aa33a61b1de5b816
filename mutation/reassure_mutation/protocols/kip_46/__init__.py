"""What mutants of healing's reference controller are looked for in."""
