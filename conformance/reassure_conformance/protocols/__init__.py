"""What is particular to one protocol in this room, a folder each.

A folder holds what there is of these modules: `guarantees`, `coverage_goals` (what has to come up
in a run), `requirements` (what the gate cannot put to the test by itself), and `world` and `tables`
(what scenarios act upon).
"""
