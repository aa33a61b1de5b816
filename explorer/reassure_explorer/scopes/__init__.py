"""The reference models within small worlds: one file for each protocol, named as its profile.

`catalogue` lists the standard scopes, `counts` what was counted there, `sweep` which findings come
out as a shortest trace.
"""
