"""The reference models within bounds, as models of the explorer.

`catalogue` lists the standard scopes and what was counted there, `sweep` which findings come out as
a shortest trace.
"""
