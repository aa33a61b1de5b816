"""The executable reference model: pure functions over frozen records.

No clock, no randomness, no input or output. What may happen next is a value; what did happen is
somebody else's business.
"""
