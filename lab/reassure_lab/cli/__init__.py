"""The verbs of `reassure lab`, a module for each."""
