"""KAFKA-4485: lag in time, the in-sync set and the high watermark, and what elections break."""
