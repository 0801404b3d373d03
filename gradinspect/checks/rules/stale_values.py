"""Saved tensors that were modified afterwards: findings that name the line that saved and the lines that wrote."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from gradinspect.checks.findings import Finding, Place, line_of, listed, place_of
from gradinspect.checks.rule import Rule, RuleDoc
from gradinspect.graph import Frame, Graph, Record

_AUGMENTED = re.compile(r"^([\w.]+) ([-+*/@|&^%]|//|\*\*)= (.+)$")
_ASSIGNED_PART = re.compile(r"^([\w.]+)\[.+\] *([-+*/]?)= ")
MAX_WRITES = 4  # lines that are shown

MODIFIED = Rule(
    doc=RuleDoc(
        code="GI101",
        title="saved tensor modified in place",
        summary="A tensor that backward needs was overwritten after it was saved.",
        explanation="Many operators save their inputs or their output because the formula of their gradient needs "
        "them. Each tensor has a version counter that every in-place write raises. Backward compares it with the "
        "version at the time of saving and fails: 'one of the variables needed for gradient computation has been "
        "modified by an inplace operation'. torch names only the first such tensor and neither line. gradinspect "
        "names all of them, the line that saved each one and the lines that wrote to it.",
        sample="""\
import torch

x = torch.randn(3, requires_grad=True)
y = x.exp()  # saves y: the gradient of exp is exp
y += 1  # overwrites y
y.sum().backward()
""",
        fixed="""\
import torch

x = torch.randn(3, requires_grad=True)
y = x.exp()  # saves y: the gradient of exp is exp
y = y + 1  # a new tensor
y.sum().backward()
""",
        remedy="Use the out-of-place operator. Update weights after backward, under torch.no_grad().",
    )
)
STEPPED = Rule(
    doc=RuleDoc(
        code="GI102",
        title="optimizer stepped between forward and backward",
        summary="An optimizer updated weights that a later backward still needs.",
        explanation="optimizer.step() writes to the weights in place. If the graph was built with the old weights and "
        "its backward runs after the step, the saved weights are gone and backward fails. This is common with two "
        "networks and two optimizers, such as a GAN, where one loss goes through both networks.",
        sample="""\
import torch
from torch import nn

G, D = nn.Linear(2, 4), nn.Linear(4, 1)
opt_d = torch.optim.SGD(D.parameters(), lr=0.1)
score = D(G(torch.randn(8, 2)))  # saves the weights of D
loss_d = score.square().mean()
loss_d.backward(retain_graph=True)
opt_d.step()  # overwrites them
loss_g = -score.mean()
loss_g.backward()
""",
        fixed="""\
import torch
from torch import nn

G, D = nn.Linear(2, 4), nn.Linear(4, 1)
opt_d = torch.optim.SGD(D.parameters(), lr=0.1)
score = D(G(torch.randn(8, 2)))  # saves the weights of D
loss_d = score.square().mean()
loss_d.backward(retain_graph=True)
loss_g = -score.mean()
loss_g.backward()
opt_d.step()
""",
        remedy="Step after the last backward that needs the weights, or run the forward pass again after the step.",
    )
)
UNTRACKED = Rule(
    doc=RuleDoc(
        code="GI103",
        title="saved tensor modified without raising its version",
        summary="A tensor that backward needs was overwritten in a way that autograd cannot detect.",
        explanation="Some writes do not raise the version counter: through .data, by optimizers with fused=True, by "
        "batch norm to its running statistics. Backward then uses the new values, and its gradients are "
        "silently wrong. A value that was restored before backward is not reported. Writes by NumPy are not detected.",
        sample="""\
import torch

x = torch.randn(3, requires_grad=True)
w = torch.randn(3, requires_grad=True)
y = (w * x).sum()  # saves w
w.data.mul_(0.9)  # overwrites w, and its version stays the same
y.backward()
""",
        fixed="""\
import torch

x = torch.randn(3, requires_grad=True)
w = torch.randn(3, requires_grad=True)
y = (w * x).sum()  # saves w
y.backward()
w.data.mul_(0.9)
""",
        remedy="Write after backward.",
    )
)


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
    writes: tuple[Write, ...]  # since it was saved; empty if they were not recorded
    version: int
    expected_version: int | None = None  # None: its version did not move, so torch will not notice


def stale_findings(graph: Graph, values: Sequence[StaleValue], backward: Frame | None) -> Iterator[Finding]:
    """Make one finding of all values that were saved on one line and written on the same lines."""

    def key(value: StaleValue) -> tuple[str, str, str]:
        return _rule(value).code, line_of(_saved_at(graph, value)), str([*_lines(value)])

    ordered = sorted(enumerate(values), key=lambda item: (key(item[1]), -item[1].node, item[0]))
    for _, group in groupby(ordered, key=lambda item: key(item[1])):
        yield _finding(graph, [value for _, value in group], backward)


def _finding(graph: Graph, values: Sequence[StaleValue], backward: Frame | None) -> Finding:
    first = values[0]
    saved = _saved_at(graph, first)
    return _rule(first).finding(
        text=_why(graph, values),
        places=(*place_of("saved", saved), *_written(first), *place_of("backward", backward)),
        remedy=_remedy(first, saved, backward),
        subjects=tuple(dict.fromkeys(_versions(value) for value in values)),
    )


def _rule(value: StaleValue) -> Rule:
    if value.expected_version is None:
        return UNTRACKED
    return MODIFIED if _optimizer(value) is None else STEPPED


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
    them = "them" if len(labels) > 1 else "it"
    ops = listed(list(dict.fromkeys(write.op for write in first.writes)), 3) if first.writes else ""
    step = _optimizer(first)
    by = f"{step.optimizer}.step()" if step is not None else ops or "An unknown operation"
    if first.expected_version is None:
        return (
            f"{node} saved {listed(labels)}. {_capital(by)} modified {them} afterwards without raising the version, so "
            "gradients will be wrong and torch raises no error."
        )
    then = _version_list({value.expected_version for value in values if value.expected_version is not None})
    now = _version_list({value.version for value in values})
    return (
        f"{node} saved {listed(labels)} at {then}. {_capital(by)} modified {them} afterwards (now at {now}), so this "
        "backward will fail."
    )


def _version_list(versions: set[int]) -> str:
    return f"version{'s' if len(versions) > 1 else ''} {listed(list(map(str, sorted(versions))))}"


def _capital(text: str) -> str:
    """Begin a sentence, unless it begins with the name of an operator or a variable."""
    return text if "_" in text.split(" ", 1)[0] or "." in text.split(" ", 1)[0] else text[0].upper() + text[1:]


def _remedy(value: StaleValue, saved: Frame | None, backward: Frame | None) -> str:
    step = _optimizer(value)
    if step is not None:
        call = "backward" if backward is None else _call_in(backward)
        return (
            f"Call {step.optimizer}.step() after {call} at {line_of(backward)}, or compute {line_of(saved)} again "
            "after the step."
        )
    frame = next((write.frame for write in value.writes if write.frame is not None), None)
    if frame is None:
        return "Look for code that writes to it outside torch, such as NumPy or another thread, and give it a copy."
    where = f"{frame.file}:{frame.line}"
    op = value.writes[0].op
    if not value.writes[0].is_tracked:
        return f"Move {where} after {line_of(backward)}, or pass a clone() at {line_of(saved)}."
    if part := _ASSIGNED_PART.match(frame.code):
        return f"Collect the parts in a list and torch.stack() them instead of assigning to {part[1]} at {where}."
    if augmented := _AUGMENTED.match(frame.code):
        target, sign, rest = augmented.groups()
        rest = rest if rest.isidentifier() or rest.replace(".", "").isalnum() else f"({rest})"
        return f"Write '{target} = {target} {sign} {rest}' at {where}, which makes a new tensor."
    if not op.endswith("_"):
        return f"Move {where} after {line_of(backward)}, or write to a copy."
    if f"{op}(" not in frame.code:
        return f"Remove inplace=True from the function or module that runs {op} at {where}."
    return f"Use {op.rstrip('_')} instead of {op} at {where}, which makes a new tensor."


def _call_in(frame: Frame) -> str:
    """Name the call as the line has it: `loss_g.backward()`."""
    found = re.search(r"[\w.\[\]]+\.(?:backward|grad)\(", frame.code)
    return f"{found[0]})" if found else "backward"
