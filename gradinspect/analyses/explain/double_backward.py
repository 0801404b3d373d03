"""Whether the backward of a Backward class can itself be differentiated, read from its formulas.

NOTE [Reading a formula]
A formula is C++ that calls torch operators, each with its own derivative, and helpers from FunctionsManual.cpp, which
call operators in turn. An operator with no formula that is not composed of others is the end: torch raises `derivative
for ... is not implemented`. A helper is assumed to be differentiable, as nearly all are; the operators it calls are not
analyzed, and the answer says so.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from gradinspect.catalog import Catalog, Entry, operator_of
from gradinspect.graph import Record

Differentiability: TypeAlias = Literal["yes", "no", "unknown"]
_CALL = re.compile(r"(?<![\w:])(?:at::)?([a-z_]\w*?)(?:_symint)?\s*(?:<[^<>()]*>)?\(")
_INFIX = re.compile(r"(?<=[\w)\]])\s+([*/+-])\s+(?=[\w(-])")
_INFIX_OPERATORS = {"*": "mul", "/": "div", "+": "add", "-": "sub"}
# Queries and plain C++: they return a non-tensor, or the same tensor.
_NO_OPERATORS = frozenset(
    [
        "defined",
        "scalar_type",
        "options",
        "layout",
        "sym_sizes",
        "sym_size",
        "sizes",
        "size",
        "sym_strides",
        "strides",
        "toDouble",
        "to_complex",
        "value",
        "has_value",
        "numel",
        "sym_numel",
        "dim",
        "is_complex",
        "isComplexType",
        "device",
        "sym_blocksize",
        "value_or",
        "tuple",
        "static_cast",
        "is_sparse",
        "toComplexDouble",
        "equal",
        "sizeof",
        "optional",
        "not_implemented",
        "areAnyTensorSubclassLike",
        "is_cpu",
        "is_xpu",
        "suggest_memory_format",
        "is_enabled",
    ]
)
# Operators whose result does not depend on the values of a float input, so that they lose no gradient.
_CONSTANTS = frozenset(
    [
        "zeros_like",
        "ones_like",
        "empty_like",
        "zeros",
        "empty",
        "full",
        "arange",
        "scalar_tensor",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_full",
        "isnan",
        "isinf",
        "isfinite",
        "sign",
        "logical_or",
        "logical_and",
        "logical_not",
        "logical_xor",
        "_unique",
        "eq",
        "ne",
        "lt",
        "gt",
        "le",
        "ge",
    ]
)
_WHILE_RECORDING = re.compile(r"GradMode::is_enabled\(\)[^?]*\?(.*?):", re.DOTALL)


class DoubleBackward(Record, frozen=True, kw_only=True):
    """Whether backward can be recorded, as with create_graph=True."""

    verdict: Differentiability
    operators: tuple[str, ...] = ()  # called by the formulas, in order
    nodes: tuple[str, ...] = ()  # Backward classes of those operators
    helpers: tuple[str, ...] = ()  # functions of FunctionsManual.cpp
    missing: tuple[str, ...] = ()  # operators without a derivative


def double_backward(entry: Entry, catalog: Catalog) -> DoubleBackward:
    """Read the formulas of one class."""
    operators: dict[str, None] = {}
    helpers: dict[str, None] = {}
    for formula in entry.formulas:
        for name in _calls(formula.text):
            plain = name.removesuffix("_") if name.removesuffix("_") in catalog.operators else name  # in place
            if plain in catalog.operators:
                operators[plain] = None
            else:
                helpers[name] = None
    missing = tuple(name for name in operators if name not in _CONSTANTS and not _has_derivative(name, catalog))
    if missing or _is_refused(entry):
        verdict: Differentiability = "no"
    else:
        verdict = "unknown" if helpers else "yes"
    return DoubleBackward(
        verdict=verdict,
        operators=tuple(operators),
        nodes=tuple(_nodes(operators, catalog)),
        helpers=tuple(helpers),
        missing=missing,
    )


def _is_refused(entry: Entry) -> bool:
    """Return whether derivatives.yaml says `not_implemented` for every input."""
    return all("not_implemented" in formula.text for formula in entry.formulas)


def _has_derivative(operator: str, catalog: Catalog) -> bool:
    if catalog.operators[operator] != "formula":
        return catalog.operators[operator] == "composite"
    return not all(_is_refused(entry) for entry in _classes(catalog)[operator])


def _calls(text: str) -> Iterator[str]:
    """Yield the functions, methods and infix operators of a formula, in the branch that runs while recording."""
    while_recording = _WHILE_RECORDING.search(text)
    if while_recording is not None:
        text = while_recording[1]
    for match in _CALL.finditer(text):
        if match[1] not in _NO_OPERATORS:
            yield match[1]
    for match in _INFIX.finditer(text):
        yield _INFIX_OPERATORS[match[1]]


def _nodes(operators: Iterable[str], catalog: Catalog) -> Iterator[str]:
    """Name the Backward class of each operator's first overload."""
    classes = _classes(catalog)
    return (classes[name][0].name for name in operators if name in classes and name not in _CONSTANTS)


def _classes(catalog: Catalog) -> dict[str, list[Entry]]:
    """Group the Backward classes by operator."""
    found: dict[str, list[Entry]] = {}
    for entry in catalog.entries.values():
        found.setdefault(operator_of(entry.signature), []).append(entry)
    return found
