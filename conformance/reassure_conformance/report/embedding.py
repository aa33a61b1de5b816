"""Data inside a page, for its scripts."""

import json
from typing import Any

from markupsafe import Markup


def embed(value: Any) -> Markup:
    """Return data as a script element can hold it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c"))
