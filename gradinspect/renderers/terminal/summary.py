"""The summary as a few lines for a terminal."""

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY
from gradinspect.analyses.summary import Summary, describe_edges
from gradinspect.graph import Origin
from gradinspect.renderers.terminal.text import cut_end, listed_within, shorten
from gradinspect.units import brief, escape_control, format_bytes, format_count, format_held

GRAD_OPTION = "; --grad N shows one"  # of the autograd.grad calls that were not recorded
MAX_WARNING = 2000  # characters, ten times our longest warning
PLURALS: dict[Origin, str] = {
    "parameter": "parameters", "buffer": "buffers", "input": "inputs", "output": "outputs", "activation": "activations",
}  # fmt: skip


def render_summary(summary: Summary, *, width: int = 80, names_options: bool = True) -> Text:
    """Write the head of a report: location, size, bytes, classes, and one line per warning.

    Args:
        summary: The figures.
        width: Columns.
        names_options: Say which option of the command line shows more.
    """
    lines = [Text(cut_end(escape_control(summary.captured_at), width, "…"), "bold")]
    if summary.other_calls:
        lines.append(Text(shorten(summary.other_calls + (GRAD_OPTION if names_options else ""), width, "…"), "bold"))
    lines += [Text(line) for line in (_size_line(summary), *_bytes_lines(summary, width))]
    if summary.classes:
        lines.append(Text(_classes_line(summary, width), "dim"))
    lines += [Text(f"warning: {brief(warning, MAX_WARNING)}", "yellow") for warning in summary.warnings]
    return Text("\n").join(lines)


def _size_line(summary: Summary) -> str:
    return ", ".join((
        format_count(summary.roots, "root"),
        format_count(summary.nodes, "node"),
        describe_edges(summary),
        format_count(summary.leaves, "leaf", "leaves"),
        f"depth {summary.max_depth:,}",
    ))  # fmt: skip


def _bytes_lines(summary: Summary, width: int) -> Iterator[str]:
    """Say how many bytes are held, and by which origins, largest first: beside the total, or else below it."""
    head = format_held(summary.held_bytes, summary.weight_bytes)
    parts = [f"{format_bytes(num_bytes)} {PLURALS[origin]}" for origin, num_bytes in largest_first(summary)
             if origin not in IN_MEMORY_ANYWAY]  # fmt: skip
    kinds = ", ".join(parts)
    line = f"{head}: {kinds}" if parts else head
    if cell_len(line) <= width:
        yield line
    else:
        yield from (cut_end(part, width, "…") for part in (head, kinds))


def largest_first(summary: Summary) -> Iterator[tuple[Origin, int]]:
    """List the bytes saved of each origin that has any, the most first."""
    ordered = sorted(summary.saved_bytes_by_origin.items(), key=lambda entry: (-entry[1], entry[0]))
    return (entry for entry in ordered if entry[1])


def _classes_line(summary: Summary, width: int) -> str:
    """List as many classes as fit, most frequent first, and count the rest."""
    parts = [f"{count:,} {brief(name)}" for name, count in summary.classes.items()]
    return listed_within(parts, width, lambda rest: f"{rest:,} more {'class' if rest == 1 else 'classes'}")
