"""The explorer itself, which knows no model.

`interface` says what a model is. `plain` walks it as it stands; `derived` walks the same model many
times faster with an engine that it makes from it. `explore` is the front door.
"""
