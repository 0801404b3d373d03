"""A value that one iteration passes to the next with its graph: a hidden state, a running sum. Where to detach it.

NOTE [Carried or shared]
A new node reads what an old one made, and an earlier backward went through the old one. If the line that made the old
one has run again since, or stands after the line that reads its value, each iteration makes the value for the next one:
it is carried, and the remedy is `detach()` at the end of an iteration. If not, the value was computed once, before the
loop or before both losses.
"""

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.facts.backward_calls import (
    EarlierCall,
    Held,
    Holds,
    HoldsOf,
    StoredAt,
    StoredLine,
    was_made_before,
    was_made_since,
)
from gradinspect.checks.facts.dead_units import reached
from gradinspect.checks.findings import line_of, listed
from gradinspect.checks.rewriting import assigned_names, base_of, read_names, statement_of, with_detached
from gradinspect.graph import Frame, Graph, Node, frame_of

_DETACHED: dict[Holds, str] = {
    "tensor": "{0} = {0}.detach()",
    "tuple": "{0} = tuple(one.detach() for one in {0})",
    "list": "{0} = [one.detach() for one in {0}]",
    "dict": "{0} = {{key: one.detach() for key, one in {0}.items()}}",
    "nested": "detach() every tensor in {0}",
}


class Join(NamedTuple):
    """A new node that reads what an old one made."""

    new: Node
    old: Node
    is_in_sequence: bool = False  # the same lines do so between the steps of this iteration, too


def joins(graph: Graph, old: set[int]) -> list[Join]:
    """List the new nodes that read what an old one made, the latest first; one of those on the same lines."""
    found: dict[tuple[int | None, int | None], Join] = {}
    for number, node in enumerate(graph.nodes):
        if number in old or node.leaf is not None:
            continue
        for edge in node.next_edges:
            if edge is not None and edge.next_node in old:
                made = graph.nodes[edge.next_node]
                found.setdefault((node.frame, made.frame), Join(node, made))
    inside = _joined_inside(graph, old) if found else set()
    return [
        one._replace(is_in_sequence=(one.new.frame, one.old.frame, one.old.name) in inside) for one in found.values()
    ]


def _joined_inside(graph: Graph, old: set[int]) -> set[tuple[int | None, int | None, str]]:
    """Collect the lines of new nodes that read new ones, with the lines and names of these."""
    return {
        (node.frame, made.frame, made.name)
        for number, node in enumerate(graph.nodes)
        if number not in old and node.leaf is None
        for edge in node.next_edges
        if edge is not None and edge.next_node not in old
        for made in (graph.nodes[edge.next_node],)
    }


def joins_in_time(graph: Graph, call: EarlierCall) -> list[Join]:
    """List where nodes made since an earlier call began read older ones that lead to what it went through."""
    old: set[int] = set()
    for number in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[number]
        if not was_made_before(node, call):
            continue
        if node.identity in call.nodes or any(edge is not None and edge.next_node in old for edge in node.next_edges):
            old.add(number)
    return joins(graph, old)


def is_carried(graph: Graph, join: Join, call: EarlierCall) -> bool:
    """Return whether an iteration made the old value for the next one. NOTE [Carried or shared]."""
    has_run_again = join.old.frame is not None and any(
        node.frame == join.old.frame and was_made_since(node, call) for node in graph.nodes
    )
    made, read = list(_from_inside(graph, join.old)), list(_from_inside(graph, join.new))
    is_same = [(one.file, one.line) for one in made] == [(one.file, one.line) for one in read]
    return (
        has_run_again
        or is_same
        or any(
            (there.file, there.function) == (here.file, here.function) and there.line < here.line
            for here in made
            for there in read
        )
    )


def carrier_of(graph: Graph, join: Join, backward: Frame | None, stored_at: StoredAt) -> StoredLine | None:
    """Return the line that keeps the old value under the name by which it is read again, or puts it into something.

    Of several, as each function on the way has a name for it, that of the function which calls backward, or an
    attribute, which outlive an iteration.
    """
    names = _carried_names(graph, join)
    found: list[tuple[int, StoredLine]] = []
    for frame in _until_made(graph, join.old):
        kept = [name for name in assigned_names(frame.code) if name in names]
        is_beside = backward is not None and (frame.file, frame.function) == (backward.file, backward.function)
        stored = None if kept or frame.is_library else stored_at(frame)
        if kept:
            found.append((0 if is_beside else 1 if "." in kept[0] else 3, StoredLine(kept[0], frame)))
        elif stored is not None:
            found.append((2, stored))
    return min(found, key=lambda one: one[0])[1] if found else None


def _until_made(graph: Graph, node: Node) -> Iterator[Frame]:
    """Yield the lines on the way to the one that has the value; a constructor returns an object, and ends it."""
    for frame in _from_inside(graph, node):
        yield frame
        if frame.function.endswith("__init__"):
            return


def carried_remedy(
    graph: Graph,
    found: Sequence[Join],
    backward: Frame | None,
    holds: HoldsOf,
    stored_at: StoredAt = lambda _frame: None,
) -> str:
    """Say where to detach what an iteration hands on to the next one.

    Args:
        graph: The graph.
        found: Where nodes of this iteration read those of an earlier one.
        backward: The line of the call.
        holds: What a variable holds.
        stored_at: Where what a line assigns is put into something that lives longer.
    """
    after: dict[str, None] = {}
    elsewhere: dict[str, None] = {}
    sequence: dict[str, list[str]] = {}  # by what is kept, the lines that read it
    for join in found:
        kept = _leaf_to_keep(graph, join)
        if kept is not None:
            elsewhere[kept] = None
            continue
        names = _carried_names(graph, join)
        here = [name for name in _assigned_beside(graph, join, names, backward) if holds(name) is not None]
        if join.is_in_sequence and not here:
            sequence.setdefault(_kept_by_sequence(graph, join), []).append(line_of(frame_of(graph, join.new)))
            continue
        here = here or _visible(names, holds)
        after.update(dict.fromkeys(here))
        if not here:
            elsewhere[_where_to_detach(graph, join, names, backward, holds, stored_at)] = None
    sentences = [*elsewhere, *(_where_a_sequence_ends(what, dict.fromkeys(lines)) for what, lines in sequence.items())]
    if after and backward is not None:
        held = {name: holds(name) or Held("tensor", name) for name in after}
        statements = "; ".join(_DETACHED[one.kind].format(one.name) for one in held.values())
        sentences.insert(
            0,
            f"Detach what one iteration hands on to the next: after {call_in(backward)} at {line_of(backward)}, add "
            f"'{statements}'.",
        )
    return " ".join(sentences)


def _leaf_to_keep(graph: Graph, join: Join) -> str | None:
    """Say how to change a leaf that a line replaces by what it computes from it, where nothing else is learned.

    Without the graph of what is handed on, the loss would have none.
    """
    made = frame_of(graph, join.old)
    match statement_of("" if made is None else made.code):
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value):
            name = ast.unparse(target)
        case _:
            return None
    old = graph.nodes.index(join.old)
    behind, around = reached(graph, [old], avoided=None), reached(graph, [one.node for one in graph.roots], avoided=old)
    first = value.args[0] if isinstance(value, ast.Call) and value.args else value
    if name not in (base_of(value), ast.unparse(first)) or _leaves(graph, around) or len(_leaves(graph, behind)) != 1:
        return None
    return (
        f"Keep {name} the leaf that is optimized, and write into it: at {line_of(made)}, 'with torch.no_grad(): "
        f"{name}.copy_({ast.unparse(value)})'."
    )


def _leaves(graph: Graph, nodes: Collection[int]) -> list[int]:
    return [number for number in nodes if graph.nodes[number].leaf is not None]


def call_in(frame: Frame) -> str:
    """Name the call as the line has it: `loss_g.backward()`."""
    for word in frame.code.replace("=", " ").replace(";", " ").split():
        name, call, _ = word.partition(".backward(")
        if call and name.replace(".", "").replace("_", "").isalnum():
            return f"{name}.backward()"
    return "backward"


def _assigned_beside(graph: Graph, join: Join, names: set[str], backward: Frame | None) -> list[str]:
    """List the names that are assigned in the function that calls backward."""
    for frame in _from_inside(graph, join.old):
        if backward is not None and (frame.file, frame.function) == (backward.file, backward.function):
            return [name for name in assigned_names(frame.code) if name in names]
    return []


def _visible(names: set[str], holds: HoldsOf) -> list[str]:
    """List the attributes that have a name where backward is called; all of them, or none."""
    held = {name: holds(name) for name in sorted(names)}
    is_visible = all(one is not None and not one.name.startswith("self.") for one in held.values())
    return list(held) if is_visible else []


def made_under_name(graph: Graph, join: Join) -> tuple[Frame | None, str]:
    """Return the line that stored an old value, and how to write it without its graph."""
    names = _carried_names(graph, join)
    for frame in _until_made(graph, join.old):
        here = [name for name in assigned_names(frame.code) if name in names]
        if here:
            return frame, f"{here[0]}.detach()"
        if frame.function.endswith("__init__"):
            return frame, f"the detached result of {line_of(frame)}"
    made = frame_of(graph, join.old)
    assigned = [] if made is None else assigned_names(made.code)
    return made, f"{assigned[0]}.detach()" if len(assigned) == 1 else f"the detached result of {line_of(made)}"


def _where_to_detach(
    graph: Graph, join: Join, names: set[str], backward: Frame | None, holds: HoldsOf, stored_at: StoredAt
) -> str:
    """Say where to detach a value: where it is read again, or where it is put into something that lives longer."""
    read = _where_it_is_read(graph, join, names, holds)
    if read is not None:
        return read
    for frame in _from_inside(graph, join.old):
        stored = None if frame.is_library else stored_at(frame)
        if stored is not None:
            return _stored_detached(stored)
    return _handed_on(graph, join, backward)


def _stored_detached(stored: StoredLine) -> str:
    """Say how a line puts a value into something without its graph."""
    line = with_detached(stored.frame.code, [stored.name])
    how = f"write '{line}'" if line is not None else f"keep {stored.name}.detach()"
    return (
        f"{line_of(stored.frame)} keeps {stored.name} for the next iteration: there, {how} (of a tuple, detach each "
        "part)."
    )


def _where_it_is_read(graph: Graph, join: Join, names: set[str], holds: HoldsOf) -> str | None:
    for frame in _from_inside(graph, join.new):
        here = sorted(name for name in read_names(frame.code) if name in names)
        held = [holds(name) for name in here]
        is_whole = here and all(one is None or one.kind == "tensor" for one in held)
        line = with_detached(frame.code, here) if is_whole else None
        if line is not None:
            return f"Detach what comes from the previous iteration: at {line_of(frame)}, write '{line}'."
        if here:
            return f"At {line_of(frame)}, detach() every tensor of {listed(here)}: it is from the previous iteration."
    return None


def _handed_on(graph: Graph, join: Join, backward: Frame | None) -> str:
    made = frame_of(graph, join.old)
    for frame in _from_inside(graph, join.old):
        assigned = assigned_names(frame.code)
        if assigned and backward is not None and (frame.file, frame.function) == (backward.file, backward.function):
            return (
                f"Hand {listed([f'{name}.detach()' for name in assigned])} on to the next iteration ({line_of(frame)})."
            )
    return (
        f"Detach what {line_of(made)} made before the next iteration reads it at {line_of(frame_of(graph, join.new))}."
    )


def _where_a_sequence_ends(what: str, lines: Collection[str]) -> str:
    """Say what to detach of a value that each step of a sequence makes of the last one, which must keep its graph."""
    return (
        f"Which line keeps {what} for the next iteration? Detach it there, once; not at {listed(list(lines))}, where "
        "one step of the sequence reads the one before."
    )


def _kept_by_sequence(graph: Graph, join: Join) -> str:
    """Name what a step of a sequence makes of the last one: the attribute that keeps it, if a line assigns one."""
    for frame in _from_inside(graph, join.old):
        kept = [name for name in assigned_names(frame.code) if "." in name]
        if len(kept) == 1:
            return f"'{kept[0]}' of {line_of(frame)}"
    made = frame_of(graph, join.old)
    names = [] if made is None else assigned_names(made.code)
    return f"'{names[0]}' of {line_of(made)}" if len(names) == 1 else f"what {line_of(made)} makes"


def _carried_names(graph: Graph, join: Join) -> set[str]:
    """Collect the names under which the old value was stored and read again: in one function, or as an attribute."""
    found = set()
    for stored in _from_inside(graph, join.old):
        assigned = assigned_names(stored.code)
        for read in _from_inside(graph, join.new):
            is_same = (read.file, read.function) == (stored.file, stored.function)
            names = read_names(read.code)
            found |= {name for name in assigned if name in names and (is_same or "." in name)}
    return found


def _from_inside(graph: Graph, node: Node) -> Iterator[Frame]:
    """Yield the line that made a node, and those that called it."""
    number = node.frame
    while number is not None:
        yield graph.frames[number]
        number = graph.frames[number].caller
