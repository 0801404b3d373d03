"""Tensors that backward does not reach: from what became of their values to findings that name the line of the cut."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

from gradinspect.checks.findings import Finding, Place, line_of, listed, place_of
from gradinspect.checks.rules.detach_causes import MANNERS, SAMPLED
from gradinspect.checks.rules.value_flow import Call, DetachCause, FlowOutcome
from gradinspect.graph import Frame, Record
from gradinspect.units import format_count

MAX_STEPS = 6  # of a path that are named
_TITLES = {
    "GI301": "the way back to parameters is cut",
    "GI302": "the loss does not require grad",
    "GI303": "parameters are used, but not for the loss",
    "GI304": "parameters get no gradient because nothing read them",
}


class NoticedAt(Record, frozen=True, kw_only=True):
    """What shows that a gradient is wanted."""

    kind: Literal["step", "read", "grad", "backward"]
    frame: Frame | None
    by: str = ""  # the variable of an optimizer


class Starved(Record, frozen=True, kw_only=True):
    """A tensor that a backward did not reach."""

    name: str
    kind: Literal["cut", "unused", "unread"]
    wish: NoticedAt
    manner: DetachCause = "unknown"
    op: str = ""  # that cut; of an unused one the last that its value went into
    path: tuple[str, ...] = ()  # operators from the first that read it to the cut
    read: Frame | None = None
    cut: Frame | None = None
    off: Frame | None = None  # where grad mode was switched off
    used: Frame | None = None  # where the value went on without its graph
    backward: Frame | None = None
    module: str | None = None  # that holds it, if that module was not called
    num_calls: int | None = None  # backward calls that were watched: what is not used in them may be used later


def missing_findings(starved: Sequence[Starved]) -> Iterator[Finding]:
    """Make one finding of all tensors that the same line starves."""
    ordered = sorted(enumerate(starved), key=lambda item: (_cause(item[1]), item[0]))
    groups = [[one for _, one in group] for _, group in groupby(ordered, key=lambda item: _cause(item[1]))]
    for group in sorted(groups, key=lambda group: starved.index(group[0])):
        yield _finding(group)


def refused_finding(starved: Sequence[Starved], made: Frame | None, backward: Frame | None) -> Finding:
    """Make the finding for a loss that has no graph at all.

    Args:
        starved: What it was computed from by the cut nearest to it; nothing where all is constant or frozen.
        made: The line that made it.
        backward: The line that wants to go back from it.
    """
    if starved:
        found = _finding(starved)
        code = "GI402" if starved[0].manner == "gradient" else "GI302"
        text = f"{found.text} {_refusal(starved[0].wish)}"
        return Finding(
            code=code, title=_TITLES.get(code, MANNERS["gradient"].title), text=text, places=found.places,
            remedy=found.remedy, subjects=found.subjects,
        )  # fmt: skip
    refusal = _refusal(NoticedAt(kind="backward", frame=backward))
    return Finding(
        code="GI302",
        title=_TITLES["GI302"],
        text=f"No tensor that it was computed from requires grad. {refusal}",
        places=(*place_of("made", made), *place_of("backward", backward)),
        remedy="Create what is to be learned with requires_grad=True, or let it be an nn.Parameter.",
    )


def frozen_finding(names: Sequence[str], frozen: Frame | None, made: Frame | None, backward: Frame | None) -> Finding:
    """Make the finding for a loss whose parameters are all frozen."""
    where = "" if frozen is None else f" since {line_of(frozen)}"
    return Finding(
        code="GI302",
        title=_TITLES["GI302"],
        text=f"All parameters that it was computed from are frozen{where}: {listed(names)}. "
        f"{_refusal(NoticedAt(kind='backward', frame=backward))}",
        places=(*place_of("made", made), *place_of("frozen", frozen), *place_of("backward", backward)),
        remedy="Call requires_grad_() on those that are to learn.",
        subjects=tuple(names),
    )


def lost_term_finding(
    gradient: Frame | None, used: Frame | None, backward: Frame | None, *, is_refused: bool = False
) -> Finding:
    """Make the finding for a gradient without a graph that a loss is made of, or that is added to it.

    Args:
        gradient: The line that computed it.
        used: The line that added it.
        backward: The line that goes back from the loss.
        is_refused: Whether nothing else is in the loss.
    """
    manner = MANNERS["gradient"]
    refusal = _refusal(NoticedAt(kind="backward", frame=backward))
    effect = refusal if is_refused else "What is added there is a constant to backward, and changes no gradient."
    return Finding(
        code="GI402",
        title=manner.title,
        text=f"{manner.why} {effect}",
        places=(*place_of("gradient", gradient), *place_of("used", used), *place_of("backward", backward)),
        remedy=manner.remedy.format(where=line_of(gradient)),
    )


def nonleaf_finding(name: str, op: str, made: Frame | None, backward: Frame | None, read: Frame | None) -> Finding:
    """Make the finding for a `.grad` that is read and that backward does not fill."""
    how = f"{op} made it from another tensor, which is the leaf" if op else "it was computed from another tensor"
    return Finding(
        code="GI305",
        title="the .grad of a tensor that is no leaf is never filled",
        text=f"{name}.grad is None: {how}. Backward fills .grad of leaves only.",
        places=(*place_of("made", made), *place_of("backward", backward), *place_of("read", read)),
        remedy=f"Make {name} last, as a leaf: with requires_grad_() after {op or 'the operator'}. "
        f"Or call {name}.retain_grad() before backward, if it is meant to be computed.",
        subjects=(name,),
    )


def nearest_cut(found: Sequence[FlowOutcome], calls: Sequence[Call]) -> list[int]:
    """Choose the tensors whose way to the loss is cut by the same cause, nearest to the loss.

    Gradients that were switched off are one cause, wherever they were met.
    """
    cut = [place for place, fate in enumerate(found) if fate.kind == "cut"]
    if not cut:
        return []
    seen = [place for place in cut if found[place].manner != "python"] or cut
    last = max((found[place] for place in seen), key=lambda fate: fate.cut or 0)
    if last.manner == "grad_off":
        return [place for place in seen if found[place].manner == "grad_off"]
    line = calls[last.cut or 0].frame
    return [place for place in seen if calls[found[place].cut or 0].frame == line]


def _cause(one: Starved) -> tuple[str, ...]:
    if one.kind == "unread":
        return (one.kind, str(one.wish.frame), one.wish.kind)
    is_scope = one.manner == "grad_off"  # which covers many lines, and may begin on one that was not seen
    return (one.kind, one.manner, line_of(one.off if is_scope else one.cut))


def _finding(group: Sequence[Starved]) -> Finding:
    first = group[0]
    names = tuple(dict.fromkeys(one.name for one in group))
    code = {"cut": "GI301", "unused": "GI303", "unread": "GI304"}[first.kind]
    why, remedy = {"cut": _cut, "unused": _unused, "unread": _unread}[first.kind](group, names)
    if first.kind == "cut" and first.manner == "gradient":
        code = "GI402"
    refusal = f" {_refusal(first.wish)}" if first.wish.kind == "grad" else ""
    return Finding(
        code=code,
        title=_TITLES.get(code, MANNERS["gradient"].title),
        text=f"{why}{refusal}",
        places=tuple(_places(first)),
        remedy=remedy,
        subjects=names,
    )


def _places(one: Starved) -> list[Place]:
    places = [*place_of("read", one.read)]
    if one.kind == "cut":
        cut = one.off or one.cut
        places += place_of("cut", cut)
        places += place_of("used", None if one.used == cut else one.used)
    elif one.kind == "unused":
        places += place_of("last", one.cut)
    places += place_of("backward", one.backward)
    if one.wish.frame != one.backward:
        places += place_of({"read": "wanted"}.get(one.wish.kind, one.wish.kind), one.wish.frame)
    return places


def _cut(group: Sequence[Starved], names: Sequence[str]) -> tuple[str, str]:
    first = group[0]
    manner = MANNERS[first.manner]
    if first.manner == "grad_off" and first.off is not None and ".sample(" in first.off.code:
        manner = SAMPLED
    verb = "get" if len(names) > 1 else "gets"
    how = "" if len(first.path) < 2 else f" The path of {first.name}: {_path(first.path)}."
    where = line_of(first.off or first.cut)
    return (
        f"{listed(names)} {verb} no gradient. {manner.why.format(op=first.op)}{how}",
        manner.remedy.format(op=first.op, where=where, used=line_of(first.used)),
    )


def _unused(group: Sequence[Starved], names: Sequence[str]) -> tuple[str, str]:
    first = group[0]
    is_one = len(names) == 1
    them = "it" if is_one else "them"
    ends = f"{listed(names)} {'gets' if is_one else 'get'} no gradient. What is computed from {them} ends at "
    ends += f"{line_of(first.cut)} with {first.op}: the loss does not depend on it"
    if first.manner == "python":
        return (
            f"{ends}, unless through the number that Python or NumPy got there, which is a constant to backward.",
            f"Compute with tensors only from {line_of(first.cut)} on, or leave {them} out of the optimizer.",
        )
    return f"{ends}.", f"Add what {line_of(first.cut)} computes to the loss, or leave {them} out of the optimizer."


def _unread(group: Sequence[Starved], names: Sequence[str]) -> tuple[str, str]:
    first = group[0]
    is_one = len(names) == 1
    modules = list(dict.fromkeys(one.module for one in group if one.module))
    uncalled = f"{listed(modules)} {'was' if len(modules) == 1 else 'were'} not called" if modules else ""
    nothing = f"no operator reads {'it' if is_one else 'them'} on the way to the loss"
    watched = "" if first.num_calls is None else f" in the {format_count(first.num_calls, 'backward call')} watched"
    why = f"{listed(names)} {'gets' if is_one else 'get'} no gradient: {uncalled or nothing}{watched}."
    if first.wish.kind != "step":
        return why, f"Look whether the loss was computed from another tensor than {listed(names)}, such as a copy."
    return (
        f"{why} {first.wish.by} holds {'it' if is_one else 'them'} and leaves {'it' if is_one else 'them'} as "
        f"{'it is' if is_one else 'they are'}.",
        f"Use {'it' if is_one else 'them'} in forward, or leave {'it' if is_one else 'them'} out of the optimizer. "
        f"DistributedDataParallel would need find_unused_parameters=True.{_used_later(first)}",
    )


def _used_later(one: Starved) -> str:
    """Say how to find out that something is used in a later step after all."""
    if one.num_calls is None:
        return ""
    return f" If a later step uses {one.module or 'it'}, watch more: --steps {max(10, 4 * one.num_calls)}."


def _path(path: Sequence[str]) -> str:
    if len(path) <= MAX_STEPS:
        return ", ".join(path)
    half = MAX_STEPS // 2
    return f"{', '.join(path[:half])}, {len(path) - 2 * half} more, {', '.join(path[-half:])}"


def _refusal(wish: NoticedAt) -> str:
    return f"torch will refuse this {'autograd.grad' if wish.kind == 'grad' else 'backward'}."
