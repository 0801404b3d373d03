"""Nodes chosen by their module."""

import pytest
from factories import two_layers

from gradinspect.analyses.memory.saved_rows import SAVED_FIELDS, saved_rows
from gradinspect.analyses.selection.node_conditions import near_misses, nodes_in_module
from gradinspect.analyses.selection.rows import RowChoice, chosen_rows
from gradinspect.analyses.structure.node_names import module_names
from gradinspect.errors import GradInspectError

LAST, RELU, FIRST = {1, 2}, {3}, {4, 5}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("model.2", LAST), ("2", LAST), ("model.[01]", RELU | FIRST), ("model", LAST | RELU | FIRST), ("9", None)],
)
def test_a_module_has_its_path_and_the_name_that_is_shown(pattern: str, found: set[int] | None) -> None:
    """Screens show `model.2` where the path is `2`: of nodes, and of the rows of what they save."""
    graph = two_layers()
    choice = RowChoice(module=pattern)
    if found is None:
        with pytest.raises(GradInspectError, match='No module matches "9"'):
            nodes_in_module(graph, pattern)
        with pytest.raises(GradInspectError, match='No module matches "9"'):
            chosen_rows(saved_rows(graph), SAVED_FIELDS, choice, module_names(graph))
        return

    assert nodes_in_module(graph, pattern) == found
    rows = chosen_rows(saved_rows(graph), SAVED_FIELDS, choice, module_names(graph))
    assert {row.node for row in rows} == found & {1, 3, 4}


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("bytes>1GiB", "No node has bytes>1GiB. The least is 0 B, the most "),
        ("class=Addmm", 'No node has class=Addmm. Closest matches: "AddmmBackward0"'),
        ("bytes>=0 and status=packed", "No node has status=packed. "),
        ("class~Relu* and class~Addmm*", "Some nodes meet each part of the condition, but none meets all of it."),
    ],
)
def test_what_is_near_a_condition_that_no_node_meets(condition: str, sentence: str) -> None:
    """The range of numbers, the names that are like it, or that only all parts together are too much."""
    (found,) = near_misses(two_layers(), condition)

    assert found.startswith(sentence)
