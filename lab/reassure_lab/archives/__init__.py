"""Histories made to measure, correct ones and such with known faults.

`synthetic` writes whole archives: `walks` through the model, with `distortions` planted, by way of
`forms` and `offers`. `sample` writes the history of one cluster write by write, and `planted` one
with a fault of each kind.
"""
