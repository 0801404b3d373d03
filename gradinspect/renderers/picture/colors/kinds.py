"""Fill the boxes of a picture by kind: dtype, device, module class, source file.

What comes in: a `Graph`, and the ranges of node ids that a picture shows as one. What goes out: a `Colouring`. The
most frequent kinds have a fill each; all others share one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gradinspect.graph import Graph, Node, TensorInfo
from gradinspect.renderers.picture.colors.looks import Colouring, Look, Swatch
from gradinspect.renderers.picture.colors.palettes import Palette
from gradinspect.renderers.picture.dot.text import shorten
from gradinspect.units import format_dtype

MAX_KIND = 32  # characters in the legend


class _Kinds(NamedTuple):
    """What kind each node is of."""

    of_node: Sequence[str | None]
    title: str
    several: str  # what a box with more than one kind is said to hold
    none: str  # and one with none


def colour_by_dtype(graph: Graph, drawn: Sequence[range], palette: Palette) -> Colouring:
    """Fill by the dtype of what the forward op made."""
    infos = [tensor_of(node) for node in graph.nodes]
    dtypes = [None if info is None else format_dtype(info.dtype) for info in infos]
    return _colouring(
        _Kinds(dtypes, "fill: dtype of the forward output", "several dtypes", "no tensor"), drawn, palette
    )


def colour_by_device(graph: Graph, drawn: Sequence[range], palette: Palette) -> Colouring:
    """Fill by where the forward output is."""
    infos = [tensor_of(node) for node in graph.nodes]
    devices = [None if info is None else info.device for info in infos]
    return _colouring(
        _Kinds(devices, "fill: device of the forward output", "several devices", "no tensor"), drawn, palette
    )


def colour_by_file(graph: Graph, drawn: Sequence[range], palette: Palette) -> Colouring:
    """Fill by the file whose line made the node; a leaf was made by none that is known."""
    files = [None if node.frame is None else graph.frames[node.frame].file for node in graph.nodes]
    colouring = _colouring(_Kinds(files, "fill: source file", "several files", "no source line"), drawn, palette)
    return colouring._replace(leaf=lambda _: Look(palette.card, ""))


def colour_by_module(graph: Graph, drawn: Sequence[range], palette: Palette) -> Colouring:
    """Fill by the class of the innermost module call around all of a box: a closed call is of its own class."""
    names = [_class_around(graph, ids) for ids in drawn]
    looks = _looks(names, palette)
    none = _none("outside of any module", palette)
    marks = (Swatch(none, "none", none.words),) if None in names else ()
    return Colouring(
        look=lambda ids: looks.get(_class_around(graph, ids) or "", none),
        leaf=lambda _: Look(palette.card, ""),
        title="fill: class of the module",
        scale=_scale(looks, palette),
        marks=(*marks, *_others(looks, palette)),
    )


def _class_around(graph: Graph, ids: range) -> str | None:
    """Name the innermost call around all of some nodes. A call's parent has a smaller index, or there is none."""
    calls = {graph.nodes[node].module for node in ids if graph.nodes[node].leaf is None}
    while len(calls) > 1 and None not in calls:
        innermost = max(call for call in calls if call is not None)
        calls.remove(innermost)
        calls.add(graph.modules[innermost].parent)
    call = calls.pop() if len(calls) == 1 else None
    return None if call is None else graph.modules[call].class_name


def tensor_of(node: Node) -> TensorInfo | None:
    """Return what a leaf is, or the first tensor that a forward op made."""
    if node.leaf is not None:
        return node.leaf.info
    return next((info for info in node.forward_outputs if info is not None), None)


def _looks(kinds: Iterable[str | None], palette: Palette) -> dict[str, Look]:
    """Give the most frequent kinds a fill each, in the order of their names; all others share one."""
    counts = Counter(kind for kind in kinds if kind is not None)
    ordered = sorted(counts, key=lambda kind: (-counts[kind], kind))
    shown = sorted(ordered[: len(palette.kinds)])
    looks = {kind: Look(fill, kind) for kind, fill in zip(shown, palette.kinds, strict=False)}
    return looks | {kind: Look(palette.plain, kind) for kind in ordered[len(palette.kinds) :]}


def _scale(looks: dict[str, Look], palette: Palette) -> tuple[Swatch, ...]:
    return tuple(Swatch(look, shorten(kind, MAX_KIND)) for kind, look in list(looks.items())[: len(palette.kinds)])


def _others(looks: dict[str, Look], palette: Palette) -> tuple[Swatch, ...]:
    others = len(looks) - len(palette.kinds)
    return (Swatch(Look(palette.plain, ""), "other", f"{others} more"),) if others > 0 else ()


def _none(words: str, palette: Palette) -> Look:
    return Look(palette.card, words, "", palette.card_line, "dashed", "-")


def _colouring(kinds: _Kinds, drawn: Sequence[range], palette: Palette) -> Colouring:
    looks = _looks(kinds.of_node, palette)
    none = _none(kinds.none, palette)
    mixed = Look(palette.card, kinds.several, kinds.several, palette.ink, "dashed", "+")

    def look(ids: Sequence[int]) -> Look:
        found = {kinds.of_node[node] for node in ids} - {None}
        return mixed if len(found) > 1 else looks.get(next(iter(found), None) or "", none)

    drawn_looks = set(map(look, drawn))
    marks = tuple(
        Swatch(mark, text, words)
        for mark, text, words in ((mixed, "mixed", f"{kinds.several} in one box"), (none, "none", kinds.none))
        if mark in drawn_looks
    )
    return Colouring(
        look=look,
        leaf=lambda node: look([node]),
        title=kinds.title,
        scale=_scale(looks, palette),
        marks=(*marks, *_others(looks, palette)),
    )
