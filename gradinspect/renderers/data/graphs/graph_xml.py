"""A graph as GraphML and GEXF, for Gephi, yEd, Cytoscape and networkx: every node and edge, with attributes."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from gradinspect.analyses.selection.finding import FoundNode, find_nodes
from gradinspect.graph import Graph, argument_name
from gradinspect.renderers.formats import FileContent
from gradinspect.units import escape_control

if TYPE_CHECKING:
    from gradinspect.renderers.picture.plan.parts import DrawOptions

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


class _Attribute(NamedTuple):
    name: str
    graphml: str  # its type there
    gexf: str


NODE_ATTRIBUTES: Final = (
    _Attribute("name", "string", "string"), _Attribute("module", "string", "string"),
    _Attribute("line", "string", "string"), _Attribute("held_bytes", "long", "long"),
    _Attribute("outputs", "string", "string"), _Attribute("leaf", "string", "string"),
    _Attribute("statuses", "string", "string"),
)  # fmt: skip
EDGE_ATTRIBUTES: Final = (
    _Attribute("position", "int", "integer"), _Attribute("input_nr", "int", "integer"),
    _Attribute("argument", "string", "string"),
)  # fmt: skip


class _Edge(NamedTuple):
    source: int
    target: int
    values: tuple[object, ...]


def graphml_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .graphml file."""
    keys = "".join(
        f'<key id="{kind}_{one.name}" for="{kind}" attr.name="{one.name}" attr.type="{one.graphml}"/>\n'
        for kind, attributes in (("node", NODE_ATTRIBUTES), ("edge", EDGE_ATTRIBUTES))
        for one in attributes
    )
    nodes = "".join(
        f'<node id="{row.id}">{_data("node", NODE_ATTRIBUTES, _values(row))}</node>\n' for row in find_nodes(graph)
    )
    edges = "".join(
        f'<edge source="{edge.source}" target="{edge.target}">{_data("edge", EDGE_ATTRIBUTES, edge.values)}</edge>\n'
        for edge in _edges(graph)
    )
    text = (
        f'{_HEAD}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n{keys}'
        f'<graph edgedefault="directed">\n{nodes}{edges}</graph>\n</graphml>\n'
    )
    return FileContent(text.encode())


def gexf_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .gexf file."""
    attributes = "".join(
        f'<attributes class="{kind}">\n{_declared(these)}</attributes>\n'
        for kind, these in (("node", NODE_ATTRIBUTES), ("edge", EDGE_ATTRIBUTES))
    )
    nodes = "".join(
        f'<node id="{row.id}" label={_quoted(row.leaf or row.name)}>{_attvalues(_values(row))}</node>\n'
        for row in find_nodes(graph)
    )
    edges = "".join(
        f'<edge id="{number}" source="{edge.source}" target="{edge.target}">{_attvalues(edge.values)}</edge>\n'
        for number, edge in enumerate(_edges(graph))
    )
    text = (
        f'{_HEAD}<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n<graph defaultedgetype="directed" '
        f'mode="static">\n{attributes}<nodes>\n{nodes}</nodes>\n<edges>\n{edges}</edges>\n</graph>\n</gexf>\n'
    )
    return FileContent(text.encode())


def _values(row: FoundNode) -> tuple[object, ...]:
    values = (getattr(row, one.name) for one in NODE_ATTRIBUTES)
    return tuple(", ".join(value) if isinstance(value, tuple) else value for value in values)


def _edges(graph: Graph) -> Iterator[_Edge]:
    for number, node in enumerate(graph.nodes):
        for position, edge in enumerate(node.next_edges):
            if edge is not None:
                values = (position, edge.input_nr, argument_name(graph, node, position))
                yield _Edge(number, edge.next_node, values)


def _data(kind: str, attributes: Sequence[_Attribute], values: Sequence[object]) -> str:
    named = zip(attributes, values, strict=True)
    return "".join(
        f'<data key="{kind}_{one.name}">{escape(_text(value))}</data>'
        for one, value in named
        if value not in (None, "")
    )


def _declared(attributes: Sequence[_Attribute]) -> str:
    numbered = enumerate(attributes)
    return "".join(f'<attribute id="{number}" title="{one.name}" type="{one.gexf}"/>\n' for number, one in numbered)


def _attvalues(values: Sequence[object]) -> str:
    written = "".join(
        f'<attvalue for="{number}" value={_quoted(value)}/>'
        for number, value in enumerate(values)
        if value not in (None, "")
    )
    return f"<attvalues>{written}</attvalues>"


def _quoted(value: object) -> str:
    return quoteattr(_text(value))


def _text(value: object) -> str:
    """Escape what XML cannot have, which is a part of what a terminal must not get."""
    return escape_control(str(value))
