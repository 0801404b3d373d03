"""Normalizations over a single value: x minus its own mean is 0, so the result is the bias, whatever x is."""

from collections.abc import Iterator
from math import prod

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding, caller_in, line_of, place_of
from gradinspect.checks.rule import Judge
from gradinspect.checks.rules.gradients.zero_gradients import ZERO
from gradinspect.checks.rules.losses.loss_graph import module_words, name_of_module
from gradinspect.graph import Graph, Node, frame_of


def lone_value_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Find layer and group normalizations that have one value in each group."""
    graph = starts.graph
    for node in graph.nodes:
        if node.name.startswith("Native") and _group_size(node) == 1 and any(node.next_edges[:1]):
            yield _finding(graph, node, starts)


JUDGE = Judge(BackwardStarts, lone_value_findings)


def _finding(graph: Graph, node: Node, starts: BackwardStarts) -> Finding:
    frame = frame_of(graph, node)
    kind = "layer norm" if "Layer" in node.name else "group norm"
    what = f"{kind}{module_words(graph, node)}"
    return ZERO.finding(
        text=f"The {what} normalizes over a single value. That minus its own mean is 0, so the result is the bias, "
        "whatever comes in, and no gradient reaches what is before it.",
        places=(
            *place_of("layer", starts.made_at(name_of_module(graph, node))),
            *place_of("zeroed", frame, caller_in(graph, node, starts.backward)), *place_of("backward", starts.backward),
        ),
        remedy=f"Remove the {what} of {line_of(frame)}, or let it normalize over several values.",
    )  # fmt: skip


def _group_size(node: Node) -> int | None:
    """Return over how many values a node normalizes; None if it is not known, or no normalization."""
    saved = {value.name: value.value for value in node.saved}
    if node.name.startswith("NativeLayerNormBackward"):
        shape = saved.get("_saved_normalized_shape")
        sizes = [size for size in shape if isinstance(size, int)] if isinstance(shape, tuple) else []
        return prod(sizes) if sizes else None
    if node.name.startswith("NativeGroupNormBackward"):
        channels, pixels, groups = (saved.get(f"_saved_{name}") for name in ("C", "HxW", "group"))
        if isinstance(channels, int) and isinstance(pixels, int) and isinstance(groups, int) and groups:
            return channels // groups * pixels
    return None
