"""JSON Schemas (2020-12) of znode contents and of observations, for programs in any language.

They describe the shape that `reassure_spec.znodes` and `reassure_spec.observations` decode. What a
schema cannot say: that no key of a request may stand twice, that a request has at most 1 MiB, that
the epochs of a log ascend, and that 1.0 is not an integer.
`/controller_epoch` is plain digits and has no schema.
"""

import json
from importlib.resources import files
from typing import Any, Final

SCHEMAS: Final = tuple(
    sorted(
        file.name.removesuffix(".json")
        for file in files(__name__).iterdir()
        if file.name.endswith(".json")
    )
)
"""The names of the schemas."""


def load_schema(name: str) -> dict[str, Any]:
    """Return the named schema. Raises KeyError when there is none; the message lists those."""
    if name not in SCHEMAS:
        raise KeyError(f"there is no schema {name!r}; the schemas are: {', '.join(SCHEMAS)}")
    text = (files("reassure_spec.schemas") / f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
