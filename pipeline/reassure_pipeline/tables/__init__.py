"""The tables that audits append to: their columns, and how they are written."""
