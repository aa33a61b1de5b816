"""KIP-236: requests by sequential znodes, a record of what is in flight, the drop rule."""
