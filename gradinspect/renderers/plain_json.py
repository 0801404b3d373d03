"""Records as JSON with every field, also those that have their defaults; what reads it need not know them."""

import json
import math

from gradinspect.graph import Record


def render_json(value: object) -> str:
    """Write a value that holds records; a number that is not finite becomes text, as JSON has none for it."""
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def plain(value: object) -> object:
    """Make dicts, lists, numbers and texts of a value that holds records."""
    if isinstance(value, Record):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
