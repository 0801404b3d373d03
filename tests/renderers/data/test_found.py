"""Found nodes as JSON, within a budget of characters."""

import json

import pytest
from factories import graph, op, saved
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import examples, graphs

from gradinspect.analyses.memory.compiled import CLOSED
from gradinspect.analyses.selection.finding import find_nodes
from gradinspect.graph import Graph, Storage
from gradinspect.renderers.data.found import render_found_json


def chain(num_nodes: int) -> Graph:
    """A chain whose later nodes hold more."""
    nodes = [
        op(
            "ExpBackward0",
            number + 1 if number + 1 < num_nodes else None,
            saved=(saved("_saved_result", 1, storage=number),),
        )
        for number in range(num_nodes)
    ]
    return graph(*nodes, storages=tuple(Storage(num_bytes=4 * (number + 1)) for number in range(num_nodes)))


@pytest.mark.parametrize("budget", [500, 1_000, 4_000])
def test_the_largest_nodes_come_first_within_the_budget(budget: int) -> None:
    """As many as fit, and how many do not."""
    record = chain(200)
    text = render_found_json(record, find_nodes(record), "bytes>0", budget)
    found = json.loads(text)
    ids = [node["id"] for node in found["nodes"]]

    assert len(text) <= budget
    assert ids == list(range(199, 199 - len(ids), -1))
    assert (found["found"], found["left_out"]) == (200, 200 - len(ids))
    assert len(text) > budget - 200


def test_without_a_budget_everything_is_written() -> None:
    """In the order of ids, with every field."""
    record = chain(3)
    found = json.loads(render_found_json(record, find_nodes(record), "bytes>0"))

    assert [node["id"] for node in found["nodes"]] == [0, 1, 2]
    assert found["nodes"][0]["leaf"] is None
    assert found["found_held_bytes"] == found["graph_held_bytes"] == 24


def test_what_is_not_known_of_a_compiled_node_is_noted() -> None:
    """As below the table of the screen, in few words within a budget; nothing else that the record warns of."""
    note = f"{CLOSED}1 compiled node is not known: {'torch ' * 60}"
    record = replace(chain(3), warnings=("Another one.", note))
    notes = [
        json.loads(render_found_json(record, find_nodes(record), "bytes>0", budget))["notes"] for budget in (None, 500)
    ]

    assert notes[0] == [note]
    assert notes[1][0].startswith(note[:30])
    assert len(notes[1][0]) <= 120


@given(record=graphs(), budget=st.integers(500, 3_000))
@settings(max_examples=examples(30))
def test_no_graph_breaks_the_budget(record: Graph, budget: int) -> None:
    """Whatever it names."""
    text = render_found_json(record, find_nodes(record), "x" * 1_000, budget)

    assert len(text) <= budget
    json.loads(text)
