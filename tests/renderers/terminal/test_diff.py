"""What differs between two graphs, on a terminal and in files."""

import json

import pytest
from factories import product_plus_two, residual_blocks
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace
from strategies import graphs

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.groups import Grouper
from gradinspect.analyses.diff.records import ChangedRow, Detail, Distance, ValueDiff, ValueDifference
from gradinspect.analyses.diff.union import unite_graphs
from gradinspect.graph import Graph
from gradinspect.renderers.data.diff import (
    render_groups_json,
    render_step_github,
    render_step_json,
    render_step_markdown,
)
from gradinspect.renderers.diff_words import CallDiff, Side, StepDiff
from gradinspect.renderers.html.differences import page_differences
from gradinspect.renderers.terminal.diff import MAX_PARAMETERS, DiffPage

ROW = ChangedRow(kind="changed", module="fc", what="AddmmBackward0")


@pytest.mark.parametrize("num_rows", [10, 11])
def test_what_was_replaced_in_many_places_is_said_once(num_rows: int) -> None:
    """Only where there are too many rows to see it."""
    diff = diff_graphs(product_plus_two(), residual_blocks(5))
    rows = tuple(replace(ROW, module=f"fc{place}") for place in range(num_rows))
    lines = [line.plain for line in DiffPage(width=80).lines(replace(diff, rows=rows), [Side("A", ""), Side("B", "")])]

    told = [
        "  classes: ExpBackward0 0 → 5, AddBackward0 1 → 5, MulBackward0 1 → 5,",
        "    EmbeddingBackward0 0 → 1",
    ]
    assert [line for line in lines if line in told] == (told if num_rows > 10 else [])
    words = "ExpBackward0 0 → 5, AddBackward0 1 → 5, MulBackward0 1 → 5, EmbeddingBackward0 0 → 1"
    comment = render_step_markdown(StepDiff([CallDiff(replace(diff, rows=rows), [Side("A", ""), Side("B", "")], [])]))
    assert (f"Classes: `{words}`\n" in comment) == (num_rows > 10)
    page = page_differences(replace(diff, rows=rows), unite_graphs(product_plus_two(), residual_blocks(5), diff))
    assert [one.entries[0].words for one in page if one.title == "classes"] == [words] * (num_rows > 10)


def test_a_line_of_code_that_makes_many_nodes_is_said_once() -> None:
    """On every screen, and a node of which nothing else differs has no row."""
    line = Detail("line", before="h = fc(x).relu()", after="h = fc(x).gelu()")
    operator = Detail("operator", before="Relu", after="Gelu")
    rows = (
        replace(ROW, details=(line,), line="a.py:7", nodes_before=(0,), nodes_after=(0,)),
        replace(ROW, what="ReluBackward0", details=(operator, line), line="a.py:7", nodes_after=(1,)),
        replace(ROW, what="TBackward0", details=(replace(line, after="x"),), line="a.py:9", nodes_after=(2,)),
    )
    before, after = product_plus_two(), residual_blocks(5)
    diff = replace(diff_graphs(before, after), rows=rows, module_changes=(), leaf_changes=())
    sides = [Side("A", ""), Side("B", "")]
    screen = [line.plain for line in DiffPage(width=80).lines(diff, sides)]

    assert screen[screen.index("fc") : -1] == snapshot(
        [
            "fc",
            "  ~ ReluBackward0                                                         a.py:7",
            "      operator: Relu → Gelu",
            "",
            "lines",
            "  ~ a.py:7  2 nodes",
            "      - h = fc(x).relu()",
            "      + h = fc(x).gelu()",
            "  ~ a.py:9  1 node",
            "      - h = fc(x).relu()",
            "      + x",
            "",
        ]
    )
    assert render_step_markdown(StepDiff([CallDiff(diff, sides, [])])).splitlines()[-5:] == snapshot(
        [
            "| --- | --- | --- | --- | --- |",
            "| `fc` | ~ | `ReluBackward0` `operator: Relu → Gelu` |  | `a.py:7` |",
            "",
            "- line `a.py:7`, 2 nodes: `h = fc(x).relu()` → `h = fc(x).gelu()`",
            "- line `a.py:9`, 1 node: `h = fc(x).relu()` → `x`",
        ]
    )
    assert render_step_github(StepDiff([CallDiff(diff, sides, [])]), str).splitlines() == snapshot(
        [
            "::notice file=a.py,line=7,title=gradinspect diff::fc: ~ ReluBackward0 (operator: Relu → Gelu)",
            "::notice file=a.py,line=7,title=gradinspect diff::line of 2 nodes: h = fc(x).relu() → h = fc(x).gelu()",
            "::notice file=a.py,line=9,title=gradinspect diff::line of 1 node: h = fc(x).relu() → x",
        ]
    )
    page = page_differences(diff, unite_graphs(before, after, diff_graphs(before, after)))
    assert [
        (entry.line, entry.words, entry.details) for one in page if one.title == "lines" for entry in one.entries
    ] == snapshot(
        [
            ("a.py:7", "2 nodes", ("h = fc(x).relu() → h = fc(x).gelu()",)),
            ("a.py:9", "1 node", ("h = fc(x).relu() → x",)),
        ]
    )


def test_lines_of_code_that_are_cut_show_where_they_differ() -> None:
    """Both begin at the same letter."""
    line = Detail("line", before="x" * 90 + " + a", after="x" * 90 + " + b")
    diff = replace(diff_graphs(product_plus_two(), residual_blocks(5)), rows=(replace(ROW, details=(line,)),))
    screen = [line.plain for line in DiffPage(width=80).lines(diff, [Side("A", ""), Side("B", "")])]

    assert [line for line in screen if "+ a" in line or "+ b" in line] == snapshot(
        ["      - …xxxxx + a", "      + …xxxxx + b"]
    )


@pytest.mark.slow
@given(graphs(), graphs(), st.integers(60, 120), st.booleans())
def test_no_line_is_wider_than_asked(before: Graph, after: Graph, width: int, unicode: bool) -> None:
    """Whatever two files say; nothing that is printed can control the terminal."""
    diff = diff_graphs(before, after)
    page = DiffPage(width=width, unicode=unicode)
    lines = list(page.lines(diff, [Side("a\x1b.json", "x" * 90), Side("b.json", "")], ["bytes>1: +\x1b"]))

    assert all(line.cell_len <= width for line in lines)
    assert all(line.plain.isprintable() for line in lines)
    assert unicode or all(line.plain.isascii() for line in lines)


@pytest.mark.slow
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


def test_each_call_of_a_step_is_shown() -> None:
    """Those that are equal in two lines, others as if they were compared alone; the last line says which are which."""
    one, other = product_plus_two(), residual_blocks(5)
    calls = [
        CallDiff(diff_graphs(before, other), [Side("A", f"backward #{number}"), Side("B", f"backward #{number}")], [])
        for number, before in ((1, other), (2, one))
    ]
    lines = [line.plain for line in DiffPage(width=80).step(StepDiff(calls))]
    alone = [line.plain for line in DiffPage(width=80).lines(calls[1].diff, calls[1].sides)]

    assert lines[lines.index("No difference.") + 2 : -2] == alone
    assert lines[-1] == "backward #2 differs, backward #1 is equal."


@pytest.mark.parametrize(("number", "more"), [(MAX_PARAMETERS, []), (MAX_PARAMETERS + 2, ["  and 2 more parameters"])])
def test_parameters_that_have_other_values_are_named(number: int, more: list[str]) -> None:
    """The first of many; an index follows the name of the model."""
    found = tuple(
        ValueDifference(
            node_before=0,
            node_after=0,
            output_nr=0,
            distance=Distance(absolute=1.0, relative=0.5),
            name=f"{place}.bias",
        )
        for place in range(number)
    )
    one = product_plus_two()
    diff = replace(diff_graphs(one, one), values=ValueDiff(parameters=found, num_compared=number))
    lines = [line.plain for line in DiffPage(width=80).lines(diff, [Side("A", ""), Side("B", "")])]

    assert [line.partition(":")[0] for line in lines if "parameter" in line and "values" not in line] == [
        *(f"  parameter model.{place}.bias" for place in range(MAX_PARAMETERS)), *more,
    ]  # fmt: skip
