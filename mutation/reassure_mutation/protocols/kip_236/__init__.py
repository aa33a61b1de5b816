"""What mutants of KIP-236's reference controller are looked for in."""
