"""A graph as a Mermaid flowchart, folded as the pictures are, for Markdown on GitHub and in notebooks."""

from collections.abc import Iterator
from typing import Final

from gradinspect.analyses.memory.odd_copies import OddCopies
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.call_names import short_name
from gradinspect.analyses.structure.copy_ranges import name_of_blocks, with_ranges
from gradinspect.analyses.structure.folding import Scope
from gradinspect.analyses.structure.node_names import class_name_of
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.formats import FileContent
from gradinspect.renderers.picture.plan.drawing import Drawing, plan_drawing
from gradinspect.renderers.picture.plan.parts import Box, DrawOptions, ScopeEnd, ScopeStart
from gradinspect.units import brief, format_bytes, format_count, format_tensor

MAX_EDGES: Final = 500  # Mermaid's own limit, above which it shows an error in place of the picture
MAX_TEXT: Final = 80
# What means something in a quoted label; `#` begins an entity there.
_ENTITIES: Final = str.maketrans({char: f"#{ord(char)};" for char in '#"&<>`\\'})


def mermaid_file(graph: Graph, options: DrawOptions) -> FileContent:
    """Make a .mmd file.

    Raises:
        GradInspectError: The picture has more edges than Mermaid accepts.
    """
    drawing = plan_drawing(graph, options)
    if len(drawing.arrows) > MAX_EDGES:
        raise GradInspectError(
            f"The picture has {len(drawing.arrows):,} edges, and Mermaid accepts at most {MAX_EDGES}.",
            "Show less: a smaller depth, or a part of the graph.",
        )
    shown = with_ranges(graph, [part.scope for part in drawing.parts if isinstance(part, ScopeStart)])
    text = "\n".join(_lines(shown, drawing, options)) + "\n"
    return FileContent(text.encode(errors="backslashreplace"), drawing.notes)


def _lines(graph: Graph, drawing: Drawing, options: DrawOptions) -> Iterator[str]:
    yield f"flowchart {options.direction}"
    numbers = {id(box): number for number, box in enumerate(drawing.boxes)}
    odd_copies = OddCopies(graph, held_bytes_by_node(graph))
    num_scopes, level = 0, 1
    for part in drawing.parts:
        if isinstance(part, ScopeEnd):
            level -= 1
            yield f"{'  ' * level}end"
        elif isinstance(part, ScopeStart):
            yield f'{"  " * level}subgraph s{num_scopes}["{_quoted(_frame_name(graph, part.scope))}"]'
            num_scopes, level = num_scopes + 1, level + 1
        elif id(part) in numbers:
            yield f'{"  " * level}n{numbers[id(part)]}["{_text(graph, part, odd_copies)}"]'
    for arrow in drawing.arrows:
        yield f"  n{arrow.tail} --> n{arrow.head}"


def _frame_name(graph: Graph, scope: Scope) -> str:
    times = f" x{len(scope.copies) + 1:,}" if scope.copies else ""
    return f"{name_of_blocks(graph, scope) or _scope_name(graph, scope.module)}{times}"


def _scope_name(graph: Graph, call: int | None) -> str:
    if call is None:
        return "repeated block"
    module = graph.modules[call]
    return f"{short_name(module.path, None, graph.model_name)}  {module.class_name}"


def _text(graph: Graph, box: Box, odd_copies: OddCopies) -> str:
    """Write what a box says, and in a line of its own the copy whose bytes are far from those of the others."""
    odd = odd_copies.words(box.scope) if box.scope is not None else ""
    return "<br/>".join(map(_quoted, filter(None, (_label(graph, box), odd))))


def _label(graph: Graph, box: Box) -> str:
    first = graph.nodes[box.ids.start]
    if box.kind == "node":
        outputs = ", ".join(format_tensor(info) for info in first.forward_outputs[:2] if info is not None)
        return f"{class_name_of(first)}  {outputs}"
    copies = (
        f" x{len(box.scope.copies) + (box.kind != 'copies'):,}" if box.scope is not None and box.scope.copies else ""
    )
    call = None if box.scope is None else box.scope.module
    name = _scope_name(graph, first.module if call is None else call)
    if box.scope is not None and box.scope.copies:
        name = name_of_blocks(graph, box.scope, slice(1 if box.kind == "copies" else 0, None)) or name
    held_bytes = 0 if box.scope is None or box.kind == "copies" else box.scope.held_bytes  # copies: also of the first
    held = f"  {format_bytes(held_bytes)}" if held_bytes else ""
    return f"{name}{copies}  {format_count(len(box.ids), 'node')}{held}"


def _quoted(text: str) -> str:
    return brief(text, MAX_TEXT).translate(_ENTITIES)
