"""Formats of other tools: read back by them, with names that try to break out."""

import io
import json
import re

import networkx  # type: ignore[import-untyped]
import pytest
from browser_page import HOSTILE, small
from factories import graph, op, residual_blocks, two_layers
from hypothesis import given, settings
from strategies import examples, graphs

from gradinspect.analyses.summary import summarize
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.formats import format_of, render_file
from gradinspect.renderers.picture.plan.parts import DrawOptions

READERS = {".graphml": networkx.read_graphml, ".gexf": networkx.read_gexf}
NODE = re.compile(r'^ +n\d+\["[^"<>&]*"\]$')
SCOPE = re.compile(r'^ +subgraph s\d+\["[^"<>&]*"\]$')
ARROW = re.compile(r"^  n\d+ --> n\d+$")


def written(record: Graph, suffix: str, **options: object) -> str:
    """Return a file's text."""
    row = format_of(f"graph{suffix}")
    assert row is not None
    assert row.suffix == suffix
    return render_file(row, record, DrawOptions(**options)).content.decode()  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", READERS)
@given(record=graphs())
@settings(max_examples=examples(20))
def test_networkx_reads_every_node_and_edge(suffix: str, record: Graph) -> None:
    """With the class of each node, whatever it is called."""
    made = READERS[suffix](io.BytesIO(written(record, suffix).encode()))
    edges = [edge for node in record.nodes for edge in node.next_edges if edge is not None]

    assert made.number_of_nodes() == len(record.nodes)
    assert made.number_of_edges() == len(edges)


@pytest.mark.parametrize("suffix", READERS)
def test_names_are_text_in_xml(suffix: str) -> None:
    """They come back as they were."""
    made = READERS[suffix](io.BytesIO(written(small(), suffix).encode()))

    assert made.nodes["4"]["name"] == HOSTILE
    assert made.nodes["1"]["held_bytes"] == 8


@given(record=graphs())
@settings(max_examples=examples(20))
def test_each_line_of_mermaid_is_a_box_a_scope_or_an_arrow(record: Graph) -> None:
    """And each scope ends."""
    lines = written(record, ".mmd").splitlines()
    scopes = [line for line in lines if SCOPE.match(line)]

    assert lines[0] == "flowchart TB"
    assert all(
        NODE.match(line) or SCOPE.match(line) or ARROW.match(line) or line.strip() == "end" for line in lines[1:]
    )
    assert len(scopes) == sum(line.strip() == "end" for line in lines)


def test_mermaid_is_folded_and_has_a_limit() -> None:
    """Equal blocks are drawn once; what Mermaid would refuse, we refuse with what to do."""
    fan = graph(op("CatBackward0", *range(1, 502)), *(op(f"Op{number}Backward0", None) for number in range(501)))

    assert "Block x39" in written(residual_blocks(40), ".mmd")
    with pytest.raises(GradInspectError, match=r"has \d+ edges, and Mermaid accepts at most 500"):
        written(fan, ".mmd", full=True, max_boxes=None)


def test_speedscope_adds_up_to_what_is_held() -> None:
    """One sample per node that holds memory; every frame is there."""
    found = json.loads(written(two_layers(), ".speedscope.json"))
    profile = found["profiles"][0]

    assert sum(profile["weights"]) == profile["endValue"] == summarize(two_layers()).held_bytes
    assert len(profile["samples"]) == len(profile["weights"])
    assert max(max(stack) for stack in profile["samples"]) == len(found["shared"]["frames"]) - 1


@given(record=graphs())
@settings(max_examples=examples(20))
def test_model_explorer_has_every_edge_once(record: Graph) -> None:
    """At the node that it leads to; a name with a slash adds no layer."""
    (found,) = json.loads(written(record, ".modelexplorer.json"))["graphs"]
    edges = {
        (str(number), str(edge.next_node))
        for number, node in enumerate(record.nodes)
        for edge in node.next_edges
        if edge is not None
    }
    ids = {node["id"] for node in found["nodes"]}
    incoming = {(edge["sourceNodeId"], node["id"]) for node in found["nodes"] for edge in node["incomingEdges"]}

    assert len(ids) == len(record.nodes)
    assert incoming == edges


def test_a_leaf_is_in_the_layer_that_uses_it() -> None:
    """A model with many parameters is one box at first; what two layers share is in the one around both."""
    (layers,) = json.loads(written(two_layers(), ".modelexplorer.json"))["graphs"]
    (blocks,) = json.loads(written(residual_blocks(2), ".modelexplorer.json"))["graphs"]
    found = {node["label"]: node["namespace"] for node in (*layers["nodes"], *blocks["nodes"])}

    assert found["2.bias"] == "model Sequential/model.2 Linear"
    assert found["0.weight"] == "model Sequential/model.0 Linear"
    assert found["shared"] == "model Net"
