"""Saved tensors that were modified afterwards: findings that name the line that saved and the lines that wrote."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from gradinspect.checks.facts.backward_calls import EarlierCall, HoldsOf, StaleGraph, was_made_before
from gradinspect.checks.facts.graphs import INDEXED_ASSIGNMENT, MASKED_ASSIGNMENT, StaleValue, Write
from gradinspect.checks.findings import Finding, Place, caller_in, caller_of_helper, line_of, listed, place_of
from gradinspect.checks.rewriting import (
    PartAssignment,
    assigned_names,
    augmented,
    is_loop_index,
    out_of_place,
    part_assignment,
    read_names,
    statements_of,
    unchained,
    written_name,
)
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.graphs.carried_state import call_in, carried_remedy, is_carried, joins_in_time
from gradinspect.graph import Frame, Graph, frame_of

MAX_WRITES = 4  # lines that are shown
MAX_SAVED = 4
_NUMBER = re.compile(  # as `ast.unparse` writes it
    r"-?([\d.]+(e[-+]\d+)?|float\([^()]*\)|(math|np|numpy|torch)\.(inf|nan)|torch\.finfo\(.*\)\.(min|max))|True|False"
)

MODIFIED = Rule(
    code="GI101",
    title="saved tensor modified in place",
    summary="A tensor that backward needs was overwritten after it was saved.",
    explanation="Many operators save their inputs or their output because the formula of their gradient needs "
    "them. Each tensor has a version counter that every in-place write raises. Backward compares it with the "
    "version at the time of saving and fails: 'one of the variables needed for gradient computation has been "
    "modified by an inplace operation'. torch names only the first such tensor and neither line. gradinspect "
    "names all of them, the line that saved each one and the lines that wrote to it.",
    change="""\
  import torch

  x = torch.randn(3, requires_grad=True)
  y = x.exp()  # saves y: the gradient of exp is exp
- y += 1  # overwrites y
+ y = y + 1  # a new tensor
  y.sum().backward()
""",
    remedy="Use the out-of-place operator. Update weights after backward, under torch.no_grad().",
)
STEPPED = Rule(
    code="GI102",
    title="optimizer stepped between forward and backward",
    summary="An optimizer updated weights that a later backward still needs.",
    explanation="optimizer.step() writes to the weights in place. If the graph was built with the old weights and "
    "its backward runs after the step, the saved weights are gone and backward fails. This is common with two "
    "networks and two optimizers, such as a GAN, where one loss goes through both networks.",
    change="""\
  import torch
  from torch import nn

  G, D = nn.Linear(2, 4), nn.Linear(4, 1)
  opt_d = torch.optim.SGD(D.parameters(), lr=0.1)
  score = D(G(torch.randn(8, 2)))  # saves the weights of D
  loss_d = score.square().mean()
  loss_d.backward(retain_graph=True)
- opt_d.step()  # overwrites them
+ opt_d.step()
+ score = D(G(torch.randn(8, 2)))  # saves the new weights
  loss_g = -score.mean()
  loss_g.backward()
""",
    remedy="Run the forward pass again after the step, so that it saves the new weights. If both losses should "
    "update them, step after the last backward.",
)
UNTRACKED = Rule(
    code="GI103",
    title="saved tensor modified without raising its version",
    summary="A tensor that backward needs was overwritten in a way that autograd cannot detect.",
    explanation="Some writes do not raise the version counter: through .data, by optimizers with fused=True, by "
    "batch norm to its running statistics. Backward then uses the new values, and its gradients are "
    "silently wrong. The saved elements themselves are compared, bit by bit: a write to other elements of the same "
    "memory, as to the next position of a cache, and one that was undone before backward are not reported. To "
    "compare, up to 8 MiB of what a write overwrites are kept, and 32 MiB of all. NumPy writes into memory that it "
    "shares with a tensor, by numpy() or from_numpy(): that is found, but not the line.",
    change="""\
  import torch

  x = torch.randn(3, requires_grad=True)
  w = torch.randn(3, requires_grad=True)
  y = (w * x).sum()  # saves w
- w.data.mul_(0.9)  # overwrites w, and its version stays the same
  y.backward()
+ w.data.mul_(0.9)
""",
    remedy="Write after backward.",
)


def stale_findings(stale: StaleGraph) -> Iterator[Finding]:
    """Make one finding of all values that the same lines have written to, and that the same change repairs."""
    graph, values, backward, calls, holds = stale

    def key(value: StaleValue) -> tuple[str, str, str]:
        return _rule(value).code, str([*_lines(value)]), _remedy(graph, value, [""], backward, calls, holds)

    keyed = [(key(value), -value.node, number) for number, value in enumerate(values)]
    for _, group in groupby(sorted(keyed), key=lambda item: item[0]):
        chosen = [values[number] for *_, number in group]
        remedy = _remedy(graph, chosen[0], _saved_lines(graph, chosen), backward, calls, holds)
        yield _finding(graph, chosen, backward, remedy)


JUDGE = Judge(StaleGraph, stale_findings)


def _finding(graph: Graph, values: Sequence[StaleValue], backward: Frame | None, remedy: str) -> Finding:
    first = values[0]
    by_line = {line_of(_saved_at(graph, value)): value for value in reversed(values)}
    saved = [
        place
        for value in [*reversed(by_line.values())][:MAX_SAVED]
        for place in place_of("saved", _saved_at(graph, value), caller_in(graph, graph.nodes[value.node], backward))
    ]
    return _rule(first).finding(
        text=_why(graph, values),
        places=(
            *saved,
            *place_of("shared", first.shared),
            *_written(first, backward),
            *place_of("backward", backward),
        ),
        remedy=remedy,
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


def _saved_lines(graph: Graph, values: Sequence[StaleValue]) -> list[str]:
    """List the lines that saved, in the order in which they ran."""
    return list(dict.fromkeys(line_of(_saved_at(graph, value)) for value in values))


def _lines(value: StaleValue) -> dict[str, Frame]:
    return {line_of(write.frame): write.frame for write in value.writes if write.frame is not None}


def _written(value: StaleValue, backward: Frame | None) -> list[Place]:
    writes = list({line_of(write.frame): write for write in value.writes if write.frame is not None}.values())
    return [
        place
        for write in writes[:MAX_WRITES]
        for place in place_of("written", write.frame, caller_of_helper(write.frame, write.called, backward))
    ]


def _versions(value: StaleValue) -> str:
    if value.expected_version is None:
        return value.label
    return f"{value.label} (saved at version {value.expected_version}, now {value.version})"


def _why(graph: Graph, values: Sequence[StaleValue]) -> str:
    """Say what was modified by what, and then which node it belongs to."""
    first = values[0]
    nodes = listed(list(dict.fromkeys(graph.nodes[value.node].name for value in values)))
    lines = [] if _saved_at(graph, first) is None else _saved_lines(graph, values)
    labels = list(dict.fromkeys(value.label for value in values))
    are_many = len(labels) > 1
    ops = listed(list(dict.fromkeys(write.op for write in first.writes)), 3) if first.writes else ""
    step = _optimizer(first)
    by = f"{step.optimizer}.step()" if step is not None else ops or "code outside torch, such as NumPy"
    saved = f"saved for backward at {listed(lines)}" if lines else "saved for backward"
    what = f"{_begun(listed(labels))}, {saved}, {'were' if are_many else 'was'} modified afterwards by {by}"
    if first.expected_version is None:
        version = "their versions" if are_many else "its version"
        return (
            f"{what}, which does not raise {version}: gradients will be wrong, and torch raises no error. ({nodes} "
            f"saved {'them' if are_many else 'it'}.)"
        )
    then = _version_list({value.expected_version for value in values if value.expected_version is not None})
    now = _version_list({value.version for value in values})
    are = "they are" if are_many else "it is"
    return f"{what}, so this backward will fail. ({nodes} saved {then}; now {are} at {now}.)"


def _begun(labels: str) -> str:
    """Begin a sentence with what was saved: a variable, or `the f32[2, 3] of ExpBackward0`."""
    return f"The {labels.removeprefix('the ')}" if labels.startswith("the ") else labels


def _version_list(versions: set[int]) -> str:
    return f"version{'s' if len(versions) > 1 else ''} {listed(list(map(str, sorted(versions))))}"


def _remedy(  # everything about one change
    graph: Graph,
    value: StaleValue,
    saved: Sequence[str],
    backward: Frame | None,
    calls: Sequence[EarlierCall],
    holds: HoldsOf,
) -> str:
    """Say what to change: what one iteration hands on to the next, when to compute, or how to write."""
    node, all_saved = graph.nodes[value.node], listed(saved)
    rounds = [call for call in calls if was_made_before(node, call) and line_of(call.frame) == line_of(backward)]
    older = joins_in_time(graph, rounds[-1]) if rounds and node.identity in rounds[-1].nodes else []
    carried = [join for join in older if is_carried(graph, join, rounds[-1])]
    if carried:
        return carried_remedy(graph, carried, backward, holds)
    step = _optimizer(value)
    frame = next((write.frame for write in value.writes if write.frame is not None), None)
    if rounds and frame is not None:  # it was computed before the loop in which it is written
        what = f"{step.optimizer}.step()" if step is not None else f"{line_of(frame)}"
        return (
            f"Compute {all_saved}, and all that is read there, inside the loop, so that it is made anew after {what}; "
            f"or run {what} once, after the loop."
        )
    if step is not None:
        call = "backward" if backward is None else call_in(backward)
        last = value.writes[-1]
        steps = listed(list(dict.fromkeys(f"{one.optimizer}.step()" for one in value.writes)))
        loss = frame_of(graph, graph.nodes[graph.roots[0].node]) if graph.roots else None
        rest = "" if loss is None or line_of(loss) in saved else f" and what {line_of(loss)} makes of that"
        return (
            f"Compute {all_saved}{rest} again after {last.optimizer}.step() at {line_of(last.frame)}. Or call "
            f"{steps} after {call} at {line_of(backward)}, if the gradients of both should update these weights."
        )
    if frame is None:
        return "Look for code that writes to it outside torch, such as NumPy or another thread, and give it a copy."
    if "batch_norm" in value.writes[0].op:
        return (
            f"Compute {all_saved} after {line_of(frame)}, which changes the running statistics that it reads. Or call "
            f"the module in eval mode at {line_of(frame)}."
        )
    if value.writes[0].is_tracked or "out=" in frame.code.replace(" ", ""):
        return _out_of_place(value, frame, holds)
    return _later_or_copy(graph, all_saved, value, frame, backward)


def _out_of_place(value: StaleValue, frame: Frame, holds: HoldsOf) -> str:
    """Replace writes that autograd records by operators that make new tensors."""
    where, write = line_of(frame), value.writes[0]
    part = part_assignment(frame.code)
    line = augmented(frame.code)
    if part is not None and write.op == MASKED_ASSIGNMENT:
        line = _masked(part)
    elif part is not None and write.op != INDEXED_ASSIGNMENT and is_loop_index(part.selection):
        return f"Collect the parts in a list and torch.stack() them instead of assigning to {part.target} at {where}."
    elif line is None and write.has_form:
        chain = unchained(frame.code, {one.op for one in value.writes if one.has_form})
        line = chain or out_of_place(frame.code, write.op)
    if line is not None:
        return _rewritten(line, where, _list_of(value.label, line.partition(" = ")[0], holds))
    if "out=" in frame.code.replace(" ", ""):
        return f"Remove out= at {where} and assign the result, which is a new tensor."
    name = written_name(frame.code, write.op)
    if name is None and write.has_form and statements_of(frame.code):
        return f"Remove inplace=True from the function or module that runs {write.op} at {where}."
    copied = None if name is None else _assignable(name, value.label, holds)
    if copied is None:
        return f"Write to a copy at {where}: clone() the tensor first."
    return f"Write to a copy: add '{copied} = {copied}.clone()' before {where}."


def _assignable(name: str, label: str, holds: HoldsOf) -> str | None:
    """Return what can be assigned a copy: `losses[0]` is a tensor, and `losses` is a list."""
    held = holds(name)
    if held is None or held.kind == "tensor":
        return name
    return label if held.kind in ("list", "dict") and label.startswith(f"{name}[") else None


def _masked(part: PartAssignment) -> str | None:
    """Replace an assignment to the elements that a mask selects."""
    target, index, sign, value = part
    if sign is None and _is_number(value):
        return f"{target} = {target}.masked_fill({index}, {value})"
    if sign is None and value.endswith(f"[{index}]"):
        return f"{target} = torch.where({index}, {value.removesuffix(f'[{index}]')}, {target})"
    if sign is not None and _is_number(value):
        return f"{target} = torch.where({index}, {part.result}, {target})"
    return f"{target} = {target}.masked_scatter({index}, {value})" if sign is None else None


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _rewritten(line: str, where: str, whole: str | None) -> str:
    """Say what to write instead, into a variable or a whole list."""
    if whole is None:
        return f"Write '{line}' at {where}, which makes a new tensor."
    return (
        f"Collect the results in a new list, and use it in place of {whole} after the loop: '{line}' at {where} "
        "changes the variable of the loop alone."
    )


def _list_of(label: str, name: str, holds: HoldsOf) -> str | None:
    """Return the list whose element a variable is, such as that of a loop: `parts` of `parts[0]`."""
    whole = label.partition("[")[0]
    held = None if name in (label, whole) or whole == label else holds(whole)
    return whole if held is not None and held.kind == "list" else None


def _later_or_copy(graph: Graph, all_saved: str, value: StaleValue, frame: Frame, backward: Frame | None) -> str:
    """Advise on a write that autograd does not record: after backward, or to other memory than what was saved.

    It can move after backward if it stands before it in the same function, and after the line that saved, and if no
    line in between computes the loss from what was written.
    """
    name, where, saved = value.label, line_of(frame), _saved_at(graph, value)
    is_read = backward is not None and _is_read_between(graph, name, frame, backward)
    is_movable = (
        backward is not None
        and not is_read
        and (frame.file, frame.function) == (backward.file, backward.function)
        and frame.line < backward.line
        and (saved is None or saved.function != frame.function or saved.line < frame.line)
    )
    move = f"Move {where} after {line_of(backward)}, unless something in between needs the new values."
    copy = f"use {name}.clone() at {all_saved}, so that backward still has the values it needs."
    is_named = saved is not None and name in read_names(saved.code)
    if is_named and (_is_parameter(graph, value) or not is_read):
        return f"{move[:-1]}; in that case {copy}" if is_movable else f"{copy[0].upper()}{copy[1:]}"
    if is_movable:
        return move
    new = f"Compute with a new tensor instead of writing to {name} at {where}"
    if is_named or (saved is not None and name in assigned_names(saved.code)):
        return f"{new}."
    return f"{new}, or compute {all_saved} again after the write."


def _is_parameter(graph: Graph, value: StaleValue) -> bool:
    """Return whether it is the parameter itself that was saved, which has to stay the same tensor."""
    return any(one.name == value.name and one.origin == "parameter" for one in graph.nodes[value.node].saved)


def _is_read_between(graph: Graph, name: str, write: Frame, backward: Frame) -> bool:
    """Return whether a line between a write and backward makes a node from a variable."""
    return any(
        (one.file, one.function) == (write.file, write.function)
        and write.line < one.line <= backward.line
        and name in read_names(one.code)
        for one in graph.frames
    )
