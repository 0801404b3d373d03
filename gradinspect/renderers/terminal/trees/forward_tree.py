"""A graph in the order of the forward pass, as lines of `rich.text.Text`, none wider than asked for."""

from collections.abc import Iterator
from itertools import islice, pairwise

from rich.text import Text

from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.analyses.structure.forward_order import ForwardRow, forward_rows
from gradinspect.analyses.structure.outline_rows import Guide, Row
from gradinspect.graph import Graph
from gradinspect.renderers.terminal.trees.tree import TreeOptions, TreePage, opener


def render_forward(graph: Graph, options: TreeOptions) -> Iterator[Text]:
    """Yield which part of the graph is shown, the rows, what was left out, and a legend."""
    scope = fold_graph(graph, repeats=not options.full, shapes=options.fold_shapes)
    page = TreePage(graph, options, scope)
    page.direction = (
        f"forward: inputs first {page.symbols.separator} {page.symbols.back} where an op takes tensors from"
    )
    yield from page.first_lines()
    is_open = opener(scope, options, lambda opens: forward_rows(graph, scope, opens))
    rows = islice(forward_rows(graph, scope, is_open), options.max_rows)
    drawn = ((row, _drawn(row)) for row in rows)
    for (row, line), following in pairwise([*drawn, (None, None)]):
        if row is not None and line is not None:
            page.kinds.update("leaf" for source in row.inputs if graph.nodes[source].leaf is not None)
            page.num_told += len(row.views) if isinstance(row.item, int) else 0
            yield from page.lines(line, following[1], page.writer.inputs(row.inputs))
    yield from page.last_lines(scope.num_nodes)


def _drawn(row: ForwardRow) -> Row:
    """Make the row that the tree draws."""
    around: list[Guide] = ["scope"] * row.level
    guides = tuple(around)
    if isinstance(row.item, int):
        return Row(kind="node", guides=guides, nodes=(row.item,), call=row.call)
    return Row(kind="scope", guides=guides, scope=row.item, is_open=row.is_open)
