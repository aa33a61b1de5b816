"""The worlds of the old znode in front of KIP-236, and what was found there."""
