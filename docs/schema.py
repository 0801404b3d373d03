"""Write docs/capture.schema.json, the JSON Schema of capture files: `python docs/schema.py`."""

import json
from pathlib import Path

import msgspec

from gradinspect.graph import Graph
from gradinspect.storage.encoding import FORMAT, SCHEMA_VERSION

FILE = Path(__file__).with_name("capture.schema.json")


def capture_schema() -> str:
    """Return what docs/capture.schema.json should say."""
    graph = msgspec.json.schema(Graph)
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A capture file of gradinspect",
        "description": "Numbers that JSON lacks are texts: NaN, Infinity, -Infinity.",
        "type": "object",
        "properties": {
            "format": {"const": FORMAT},
            "version": {"const": SCHEMA_VERSION},
            "graph": {"$ref": graph["$ref"]},
        },
        "required": ["format", "version", "graph"],
        "additionalProperties": False,
        "$defs": _with_named_numbers(graph["$defs"]),
    }
    return json.dumps(document, indent=1) + "\n"


def _with_named_numbers(part: object) -> object:
    """Let every number be a text too."""
    if isinstance(part, dict):
        numbers = {"type": ["number", "string"]} if part.get("type") == "number" else {}
        return {**{key: _with_named_numbers(value) for key, value in part.items()}, **numbers}
    return [_with_named_numbers(value) for value in part] if isinstance(part, list) else part


if __name__ == "__main__":
    FILE.write_text(capture_schema(), encoding="utf-8")
    print(f"Wrote {FILE}")  # a command
