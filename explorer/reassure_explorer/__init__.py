"""Every reachable state of a finite model: counted, checked, and told as the shortest story.

`interface` says what a model is. `plain` walks it as it stands; `derived` walks the same model many
times faster with an engine that it makes from it. `reference` and `scopes` give the reference model
that shape, `explore` is the front door.
"""
