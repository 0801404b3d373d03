"""Saved tensors that were written after they were saved: from the facts to findings that name both lines."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from gradinspect.checks.findings import Finding, Place, line_of, listed, place_of
from gradinspect.graph import Frame, Graph, Record

_AUGMENTED = re.compile(r"^([\w.]+) ([-+*/@|&^%]|//|\*\*)= (.+)$")
_ASSIGNED_PART = re.compile(r"^([\w.]+)\[.+\] *([-+*/]?)= ")
MAX_WRITES = 4  # lines that are shown


class Write(Record, frozen=True, kw_only=True):
    """One operator that wrote into memory."""

    op: str  # "add_", as torch names it
    frame: Frame | None
    is_tracked: bool = False  # by autograd; not so under no_grad and through .data
    optimizer: str | None = None  # the variable that holds the optimizer whose step this was


class StaleValue(Record, frozen=True, kw_only=True):
    """A saved tensor that is no longer what it was when it was saved."""

    node: int
    name: str  # of the saved attribute
    label: str  # of the tensor: a parameter's or a variable's name, or what made it
    writes: tuple[Write, ...]  # since it was saved; none where nobody saw them
    version: int
    expected_version: int | None = None  # None: its version did not move, so torch will not notice


def stale_findings(graph: Graph, values: Sequence[StaleValue], backward: Frame | None) -> Iterator[Finding]:
    """Make one finding of all values that the same line saved and the same lines wrote."""

    def key(value: StaleValue) -> tuple[str, str, str]:
        return _code(value), line_of(_saved_at(graph, value)), str([*_lines(value)])

    ordered = sorted(enumerate(values), key=lambda item: (key(item[1]), -item[1].node, item[0]))
    for _, group in groupby(ordered, key=lambda item: key(item[1])):
        yield _finding(graph, [value for _, value in group], backward)


def _finding(graph: Graph, values: Sequence[StaleValue], backward: Frame | None) -> Finding:
    first = values[0]
    saved = _saved_at(graph, first)
    code = _code(first)
    roles = [*place_of("saved", saved), *_written(first), *place_of("backward", backward)]
    titles = {
        "GI101": "changed in place after it was saved for backward",
        "GI102": "an optimizer stepped between forward and backward",
        "GI103": "changed after it was saved, and torch does not notice",
    }
    return Finding(
        code=code,
        title=titles[code],
        text=_why(graph, values),
        places=tuple(roles),
        remedy=_remedy(first, saved, backward),
        subjects=tuple(dict.fromkeys(_versions(value) for value in values)),
    )


def _code(value: StaleValue) -> str:
    if value.expected_version is None:
        return "GI103"
    return "GI102" if _optimizer(value) is not None else "GI101"


def _optimizer(value: StaleValue) -> Write | None:
    """Return the step that wrote, if nothing else did."""
    if value.writes and all(write.optimizer is not None for write in value.writes):
        return value.writes[0]
    return None


def _saved_at(graph: Graph, value: StaleValue) -> Frame | None:
    frame = graph.nodes[value.node].frame
    return None if frame is None else graph.frames[frame]


def _lines(value: StaleValue) -> dict[str, Frame]:
    return {line_of(write.frame): write.frame for write in value.writes if write.frame is not None}


def _written(value: StaleValue) -> list[Place]:
    frames = list(_lines(value).values())
    return [place for frame in frames[:MAX_WRITES] for place in place_of("written", frame)]


def _versions(value: StaleValue) -> str:
    if value.expected_version is None:
        return value.label
    return f"{value.label} (saved at version {value.expected_version}, now {value.version})"


def _why(graph: Graph, values: Sequence[StaleValue]) -> str:
    first = values[0]
    node = graph.nodes[first.node].name
    labels = list(dict.fromkeys(value.label for value in values))
    several = len(labels) > 1
    kept = f"{node} needs {listed(labels)} as {'they were' if several else 'it was'}"
    if first.expected_version is not None:
        kept += f" at {_saved_versions(values)}"
    ops = listed(list(dict.fromkeys(write.op for write in first.writes)), 3) if first.writes else ""
    step = _optimizer(first)
    by = f"{step.optimizer}.step()" if step is not None else ops or "something that was not seen"
    wrote = f"{by} wrote into {'them' if several else 'it'} since"
    if first.expected_version is not None:
        return f"{kept}. {_capital(wrote)}: {_now(values)}. torch will refuse this backward."
    return f"{kept}. {_capital(wrote)} without raising the version: gradients will be wrong, and there is no error."


def _saved_versions(values: Sequence[StaleValue]) -> str:
    versions = sorted({value.expected_version for value in values if value.expected_version is not None})
    return f"version{'s' if len(versions) > 1 else ''} {listed(list(map(str, versions)))}"


def _now(values: Sequence[StaleValue]) -> str:
    versions = sorted({value.version for value in values})
    return f"version{'s' if len(versions) > 1 else ''} {listed(list(map(str, versions)))} now"


def _capital(text: str) -> str:
    """Begin a sentence, unless it begins with the name of an operator or a variable."""
    return text if "_" in text.split(" ", 1)[0] or "." in text.split(" ", 1)[0] else text[0].upper() + text[1:]


def _remedy(value: StaleValue, saved: Frame | None, backward: Frame | None) -> str:
    step = _optimizer(value)
    if step is not None:
        call = "backward" if backward is None else _call_in(backward)
        return (
            f"Call {step.optimizer}.step() after {call}, {line_of(backward)}, or compute {line_of(saved)} again "
            "after the step."
        )
    frame = next((write.frame for write in value.writes if write.frame is not None), None)
    if frame is None:
        return (
            "Look for what writes without torch seeing it, such as NumPy or another thread, and let it write to a copy."
        )
    where = f"{frame.file}:{frame.line}"
    op = value.writes[0].op
    if not value.writes[0].is_tracked:
        return f"Move {where} after {line_of(backward)}, or let {line_of(saved)} read a clone()."
    if part := _ASSIGNED_PART.match(frame.code):
        return f"Collect the parts in a list and torch.stack() them, instead of writing into {part[1]} at {where}."
    if augmented := _AUGMENTED.match(frame.code):
        target, sign, rest = augmented.groups()
        rest = rest if rest.isidentifier() or rest.replace(".", "").isalnum() else f"({rest})"
        return f"Write '{target} = {target} {sign} {rest}' at {where}: that makes a new tensor."
    if not op.endswith("_"):
        return f"Move {where} after {line_of(backward)}, or let it write into a copy."
    if f"{op}(" not in frame.code:
        return (
            f"Leave out the inplace=True with which {where} runs {op}: the function or module makes a new tensor then."
        )
    return f"Use {op.rstrip('_')} in place of {op} at {where}: it makes a new tensor, and the saved one stays."


def _call_in(frame: Frame) -> str:
    """Name the call as the line has it: `loss_g.backward()`."""
    found = re.search(r"[\w.\[\]]+\.(?:backward|grad)\(", frame.code)
    return f"{found[0]})" if found else "backward"
