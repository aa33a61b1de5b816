"""What is particular to one protocol in this room, a folder each.

A folder holds what there is of three modules: `guarantees`, `world` and `live`.
"""
