"""JSON that nothing in a name can break out of, and records as JSON with every field, those with defaults too."""

import json
import math

from gradinspect.graph import Record


def render_json(value: object) -> str:
    """Write a value that holds records; a number that is not finite becomes text, as JSON has none for it."""
    return json_text(plain(value), indent=2) + "\n"


def json_text(value: object, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """Write plain values in printable ASCII: whatever a terminal or an editor would obey or hide is a JSON escape."""
    return json.dumps(value, indent=indent, separators=separators, allow_nan=False).replace("\x7f", "\\u007f")


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
