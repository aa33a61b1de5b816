"""The engine of the proofs: it runs Python on symbolic values and knows no protocol."""
