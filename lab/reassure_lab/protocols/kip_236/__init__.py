"""Archives of KIP-236: `synthetic` walks through the model, with `distortions` planted.

`offers` says what may happen next, and `canonical` remembers it; `ops` is what is written then.
"""
