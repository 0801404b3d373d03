"""Color the boxes of a picture by kind: dtype, device, module class, source file.

What comes in: a `Graph`, and the ranges of node ids that a picture shows as one. What goes out: a `Coloring`. The
most frequent kinds get a color each; all others share one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gradinspect.graph import Graph, Node, TensorInfo, frame_of
from gradinspect.renderers.picture.colors.looks import Coloring, Look, Swatch
from gradinspect.renderers.picture.colors.palettes import Palette
from gradinspect.renderers.picture.dot.text import shorten
from gradinspect.units import format_dtype

MAX_KIND = 32  # characters in the legend


class _Kinds(NamedTuple):
    """The kind of each node."""

    of_node: Sequence[str | None]
    title: str
    several: str  # the words for a box with more than one kind
    none: str  # the words for a box with none


def color_by_dtype(graph: Graph, drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color by the dtype of the forward output."""
    infos = [tensor_of(node) for node in graph.nodes]
    dtypes = [None if info is None else format_dtype(info.dtype) for info in infos]
    return _coloring(
        _Kinds(dtypes, "color: dtype of the forward output", "several dtypes", "no tensor"), drawn, palette
    )


def color_by_device(graph: Graph, drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color by the device of the forward output."""
    infos = [tensor_of(node) for node in graph.nodes]
    devices = [None if info is None else info.device for info in infos]
    return _coloring(
        _Kinds(devices, "color: device of the forward output", "several devices", "no tensor"), drawn, palette
    )


def color_by_file(graph: Graph, drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color by the source file that made the node; leaves have none."""
    frames = [frame_of(graph, node) for node in graph.nodes]
    files = [None if frame is None else frame.file for frame in frames]
    coloring = _coloring(_Kinds(files, "color: source file", "several files", "no source line"), drawn, palette)
    return coloring._replace(leaf=lambda _: Look(palette.card, ""))


def color_by_module(graph: Graph, drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color by the class of the innermost module call around a box; a collapsed call has its own class."""
    names = [_class_around(graph, ids) for ids in drawn]
    looks = _looks(names, palette)
    none = _none("outside of any module", palette)
    marks = (Swatch(none, "none", none.words),) if None in names else ()
    return Coloring(
        look=lambda ids: looks.get(_class_around(graph, ids) or "", none),
        leaf=lambda _: Look(palette.card, ""),
        title="color: module class",
        scale=_scale(looks, palette),
        marks=(*marks, *_others(looks, palette)),
    )


def _class_around(graph: Graph, ids: range) -> str | None:
    """Name the innermost call around all of the nodes. A call's parent, if any, has a smaller index."""
    calls = {graph.nodes[node].module for node in ids if graph.nodes[node].leaf is None}
    while len(calls) > 1 and None not in calls:
        innermost = max(call for call in calls if call is not None)
        calls.remove(innermost)
        calls.add(graph.modules[innermost].parent)
    call = calls.pop() if len(calls) == 1 else None
    return None if call is None else graph.modules[call].class_name


def tensor_of(node: Node) -> TensorInfo | None:
    """Return the leaf's tensor, or the first output of the forward op."""
    if node.leaf is not None:
        return node.leaf.info
    for info in node.forward_outputs:
        if info is not None:
            return info
    return None


def _looks(kinds: Iterable[str | None], palette: Palette) -> dict[str, Look]:
    """Give each of the most frequent kinds its own color, in alphabetical order; all others share one."""
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


def _coloring(kinds: _Kinds, drawn: Sequence[range], palette: Palette) -> Coloring:
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
    return Coloring(
        look=look,
        leaf=lambda node: look([node]),
        title=kinds.title,
        scale=_scale(looks, palette),
        marks=(*marks, *_others(looks, palette)),
    )
