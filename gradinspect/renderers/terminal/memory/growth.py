"""Growth over iterations: a table of backward calls, then what holds which graphs, as text, CSV and JSON."""

from collections.abc import Iterator

from rich.text import Text

from gradinspect.analyses.memory.growth import Growth, Holder
from gradinspect.renderers.terminal.text import shorten, visible
from gradinspect.units import call_name, format_bytes, format_calls, format_count

_COLUMNS = ("live nodes", "retained", "live bytes", "retained")
_CELLS = 12
_REMEDIES = {
    "variable": "detach() the tensor that is kept, or keep its number with item()",
    "graph": "detach() the tensor that one iteration passes to the next",
    "gradient": "set .grad = None after each step, or use autograd.grad()",
    "nothing": "",
}


def render_growth(growth: Growth, *, width: int = 80, unicode: bool = True) -> Iterator[Text]:
    """Yield the conclusion, one row per backward call, and each holder with the line that stored it."""
    ellipsis = "…" if unicode else "..."

    def line(text: str, style: str = "") -> Text:
        return Text(shorten(visible(text, unicode=unicode), width, ellipsis), style)

    for sentence in _conclusion(growth):
        yield line(sentence, "bold")
    yield Text()
    room = max(width - len(_COLUMNS) * _CELLS, 10)
    yield Text(f"{call_name(growth.kind):<{room}}" + "".join(f"{column:>{_CELLS}}" for column in _COLUMNS), "bold")
    for iteration in growth.iterations:
        name = shorten(visible(f"#{iteration.number}  {iteration.place}", unicode=unicode), room, ellipsis)
        figures = (
            f"{iteration.live_nodes:,}",
            f"{iteration.old_nodes:,}" if iteration.old_nodes else "",
            format_bytes(iteration.live_bytes),
            format_bytes(iteration.old_bytes) if iteration.old_bytes else "",
        )
        yield Text((f"{name:<{room}}" + "".join(f"{figure:>{_CELLS}}" for figure in figures)).rstrip())
    for holder in growth.holders:
        yield Text()
        yield line(_what_holds(holder), "bold")
        for stored in holder.stored_at:
            yield line(f"  {'continued' if holder.held_by == 'graph' else 'stored'} at {stored}")
        if holder.made_at is not None:
            yield line(f"  made at {holder.made_at}")
        if _REMEDIES[holder.held_by]:
            yield line(f"  {_REMEDIES[holder.held_by]}")


def _conclusion(growth: Growth) -> tuple[str, str]:
    seen = len(growth.iterations)
    calls = format_calls(0, seen) if growth.kind == "grad" else format_calls(seen, 0)
    few = f" (asked for {growth.asked})" if len(growth.iterations) < growth.asked else ""
    start = f"{calls} of {growth.source}{few}"
    if growth.grows:
        nodes, num_bytes = f"{growth.nodes_per_iteration:,.0f} nodes", round(growth.bytes_per_iteration)
        if num_bytes == 0:
            return start, f"The graph grows by {nodes} per iteration, without saved bytes."
        return start, f"The graph grows by {nodes} and {format_bytes(num_bytes)} per iteration."
    old = growth.iterations[-1].old_nodes
    if not growth.can_tell:
        return start, "Too few calls to tell whether the graph grows."
    if old:
        return start, f"The graph does not grow; {format_count(old, 'node')} of earlier iterations stay alive."
    return start, "The graph does not grow."


def _what_holds(holder: Holder) -> str:
    size = f"{format_count(holder.num_nodes, 'node')}, {format_bytes(holder.num_bytes)}"
    tensors = format_count(holder.num_tensors, "tensor")
    match holder.held_by:
        case "graph":
            return f"the newest graph is connected to earlier ones: {size}"
        case "gradient":
            return f"{format_count(holder.num_tensors, 'gradient')} (.grad) with a graph: {size}"
        case "nothing":
            return f"{tensors} that no variable holds: {size}"
        case _:
            return f"{holder.name}  {tensors}, {size}"
