"""Histories made to measure, correct ones and such with known faults.

`sample` writes the history of one cluster write by write, and `planted` one with a fault of each
kind. Whole archives are written by `protocols/NAME/synthetic.py`.
"""
