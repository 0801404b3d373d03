"""Where in PyTorch's sources a Backward class and its helpers are: files of the installed wheel, and the tag on GitHub.

What comes in: names. What goes out: places, relative to the folder that torch is installed in. Torch is not imported.
"""

import functools
import importlib.util
import re
from pathlib import Path

from gradinspect.graph import Record

REPOSITORY = "https://github.com/pytorch/pytorch/blob"
_INCLUDE = "torch/include/torch/csrc/autograd"
FUNCTIONS = f"{_INCLUDE}/generated/Functions.h"
MANUAL = f"{_INCLUDE}/FunctionsManual.h"
DERIVATIVES = "torchgen/packaged/autograd/derivatives.yaml"
HAND_WRITTEN = ("accumulate_grad.h", "basic_ops.h", "comm.h", "tensor.h")
_STRUCT = re.compile(r"^struct (?:TORCH_API )?(\w+) ?: ?public", re.MULTILINE)
_FUNCTION = re.compile(r"^[\w:<>,&* ]*?\b(\w+)\(", re.MULTILINE)
_DERIVATIVE = re.compile(r"^- name: ([^(\s]+)\(", re.MULTILINE)


class SourceLocation(Record, frozen=True):
    """A line of a file that comes with torch."""

    file: str
    line: int


def class_location(name: str) -> SourceLocation | None:
    """Find the declaration of a Backward class, generated or written by hand."""
    for file in (FUNCTIONS, *(f"{_INCLUDE}/functions/{header}" for header in HAND_WRITTEN)):
        line = _lines(file, _STRUCT).get(name)
        if line is not None:
            return SourceLocation(file=file, line=line)
    return None


def derivative_location(schema_name: str) -> SourceLocation | None:
    """Find the entry of an operator such as `mul.Tensor` in derivatives.yaml."""
    line = _lines(DERIVATIVES, _DERIVATIVE).get(schema_name)
    return None if line is None else SourceLocation(file=DERIVATIVES, line=line)


def helper_location(name: str) -> SourceLocation | None:
    """Find the declaration of a function that formulas call and that is no operator."""
    line = _lines(MANUAL, _FUNCTION).get(name)
    return None if line is None else SourceLocation(file=MANUAL, line=line)


def web_address(place: SourceLocation, version: str) -> str | None:
    """Return where a file is on GitHub, at the tag of a released torch."""
    release = re.match(r"\d+\.\d+\.\d+$", version.partition("+")[0])
    if release is None:
        return None
    tag = f"{REPOSITORY}/v{release[0]}"
    if place.file == DERIVATIVES:
        return f"{tag}/tools/autograd/derivatives.yaml#L{place.line}"
    if place.file == MANUAL:
        return f"{tag}/torch/csrc/autograd/FunctionsManual.cpp"
    if place.file == FUNCTIONS:
        return None  # the build makes it
    return f"{tag}/{place.file.removeprefix('torch/include/')}#L{place.line}"


@functools.cache
def _lines(file: str, pattern: re.Pattern[str]) -> dict[str, int]:
    """Map each name that a pattern finds in a file to its first line."""
    package, _, _ = file.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return {}
    try:
        text = (Path(next(iter(spec.submodule_search_locations))).parent / file).read_text(encoding="utf-8")
    except OSError:
        return {}
    found: dict[str, int] = {}
    line, position = 1, 0
    for match in pattern.finditer(text):
        line += text.count("\n", position, match.start(1))
        position = match.start(1)
        found.setdefault(match[1], line)
    return found
