"""A graph as GraphML and GEXF, for Gephi, yEd, Cytoscape and networkx: every node and edge, with attributes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from gradinspect.analyses.selection.attributes import Attributes, plain_edges, plain_nodes
from gradinspect.graph import Graph
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


def graphml_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .graphml file."""
    keys = "".join(
        f'<key id="{kind}_{one.name}" for="{kind}" attr.name="{one.name}" attr.type="{one.graphml}"/>\n'
        for kind, attributes in (("node", NODE_ATTRIBUTES), ("edge", EDGE_ATTRIBUTES))
        for one in attributes
    )
    nodes = "".join(
        f'<node id="{node.id}">{_data("node", NODE_ATTRIBUTES, node.attributes)}</node>\n'
        for node in plain_nodes(graph)
    )
    edges = "".join(
        f'<edge source="{edge.source}" target="{edge.target}">'
        f"{_data('edge', EDGE_ATTRIBUTES, edge.attributes)}</edge>\n"
        for edge in plain_edges(graph)
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
        f'<node id="{node.id}" label={_quoted(node.attributes["leaf"] or node.attributes["name"])}>'
        f"{_attvalues(NODE_ATTRIBUTES, node.attributes)}</node>\n"
        for node in plain_nodes(graph)
    )
    edges = "".join(
        f'<edge id="{number}" source="{edge.source}" target="{edge.target}">'
        f"{_attvalues(EDGE_ATTRIBUTES, edge.attributes)}</edge>\n"
        for number, edge in enumerate(plain_edges(graph))
    )
    text = (
        f'{_HEAD}<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n<graph defaultedgetype="directed" '
        f'mode="static">\n{attributes}<nodes>\n{nodes}</nodes>\n<edges>\n{edges}</edges>\n</graph>\n</gexf>\n'
    )
    return FileContent(text.encode())


def _data(kind: str, attributes: Sequence[_Attribute], values: Attributes) -> str:
    return "".join(
        f'<data key="{kind}_{one.name}">{escape(_text(values[one.name]))}</data>'
        for one in attributes
        if values[one.name] != ""
    )


def _declared(attributes: Sequence[_Attribute]) -> str:
    numbered = enumerate(attributes)
    return "".join(f'<attribute id="{number}" title="{one.name}" type="{one.gexf}"/>\n' for number, one in numbered)


def _attvalues(attributes: Sequence[_Attribute], values: Attributes) -> str:
    written = "".join(
        f'<attvalue for="{number}" value={_quoted(values[one.name])}/>'
        for number, one in enumerate(attributes)
        if values[one.name] != ""
    )
    return f"<attvalues>{written}</attvalues>"


def _quoted(value: object) -> str:
    return quoteattr(_text(value))


def _text(value: object) -> str:
    """Escape what XML cannot have, which is a part of what a terminal must not get."""
    return escape_control(str(value))
