"""JSON in printable ASCII, with every field of a record, including those with default values."""

import json
import math

from gradinspect.graph import Record


def render_json(value: object) -> str:
    """Write a value that contains records; non-finite numbers become text, because JSON has none."""
    return json_text(plain(value), indent=2) + "\n"


def json_text(value: object, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """Write plain values in printable ASCII; control and invisible characters become JSON escapes."""
    return json.dumps(value, indent=indent, separators=separators, allow_nan=False).replace("\x7f", "\\u007f")


def plain(value: object) -> object:
    """Convert a value that contains records to dicts, lists, numbers and texts."""
    if isinstance(value, Record):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
