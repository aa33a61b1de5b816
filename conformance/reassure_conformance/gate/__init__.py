"""The gate: stories and generated steps, carried out against an implementation and judged."""
