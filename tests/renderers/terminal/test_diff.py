"""What differs between two graphs, on a terminal and in files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.groups import Grouper
from gradinspect.analyses.diff.union import unite_graphs
from gradinspect.graph import Graph
from gradinspect.renderers.data.diff import (
    render_groups_json,
    render_step_github,
    render_step_json,
    render_step_markdown,
)
from gradinspect.renderers.diff_words import CallDiff, Side, StepDiff
from gradinspect.renderers.terminal.diff import DiffPage

pytestmark = pytest.mark.slow


@given(graphs(), graphs(), st.integers(60, 120), st.booleans())
def test_no_line_is_wider_than_asked(before: Graph, after: Graph, width: int, unicode: bool) -> None:
    """Whatever two files say; nothing that is printed can control the terminal."""
    diff = diff_graphs(before, after)
    page = DiffPage(width=width, unicode=unicode)
    lines = list(page.lines(diff, [Side("a\x1b.json", "x" * 90), Side("b.json", "")], ["bytes>1: +\x1b"]))

    assert all(line.cell_len <= width for line in lines)
    assert all(line.plain.isprintable() for line in lines)
    assert unicode or all(line.plain.isascii() for line in lines)


@given(graphs(), graphs())
def test_every_format_takes_any_two_graphs(before: Graph, after: Graph) -> None:
    """And the picture too; JSON can be read back."""
    diff = diff_graphs(before, after)
    sides = [Side("a|b.json", "`"), Side("b.json", "")]
    grouper = Grouper()
    for graph in (before, after, before):
        grouper.add(graph)

    step = StepDiff([CallDiff(diff, sides, ["x"])])
    two = StepDiff([*step.calls, *step.calls], ["Only A has a call\nlike it"])
    assert json.loads(render_step_json(step))["is_same"] == diff.is_empty
    assert [call["failed"] for call in json.loads(render_step_json(two))["calls"]] == [["x"], ["x"]]
    assert all(line.cell_len <= 80 for line in DiffPage(width=80).step(two))
    assert json.loads(render_groups_json(grouper.groups(), ["a", "b", "c"], []))["groups"][0]["diff"] is None
    assert render_step_markdown(two).isprintable() is False  # it has newlines
    assert all(line.startswith("::") for line in render_step_github(two, str).splitlines())
    assert len(unite_graphs(before, after, diff).statuses) >= len(after.nodes)
