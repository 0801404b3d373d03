"""The head of a report on a terminal, for machines and in Markdown."""

import json

import msgspec
import pytest
from factories import graph, op, product_plus_two
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.cells import cell_len
from strategies import examples, graphs

from gradinspect.analyses.summary import Summary, summarize
from gradinspect.graph import Graph
from gradinspect.renderers.data.summary import SUMMARY, render_summary_markdown
from gradinspect.renderers.data.table import render_figures
from gradinspect.renderers.terminal.summary import render_summary


def large() -> Summary:
    """Figures of a model of some size."""
    return Summary(
        nodes=530,
        edges=1_578,
        none_edges=24,
        roots=1,
        leaves=149,
        max_depth=412,
        classes={f"VeryLongOperator{number}Backward0": 40 - number for number in range(5)} | {"AccumulateGrad": 1},
        held_bytes=39_582_234,
        weight_bytes=14_000_000,
        saved_bytes_by_origin={"parameter": 14_000_000, "buffer": 0, "input": 0, "output": 0, "activation": 39_582_234},
        captured_at="backward #1  train.py:41  loss.backward()",
        warnings=("one value could not be read",),
    )


def test_the_head_on_a_terminal() -> None:
    """Four or five lines at 80 columns and one for each warning; what does not fit is counted."""
    assert f"{render_summary(large()).plain}\n" == snapshot("""\
backward #1  train.py:41  loss.backward()
1 root, 530 nodes, 1,578 edges (24 None), 149 leaves, depth 412
37.7 MiB held (+ 13.4 MiB of weights, in memory anyway): 37.7 MiB activations
40 VeryLongOperator0Backward0, 39 VeryLongOperator1Backward0, 4 more classes
warning: one value could not be read
""")


def test_an_empty_graph_has_a_head() -> None:
    """Nothing saved and no class leave no empty list behind."""
    assert render_summary(summarize(graph(roots=()))).plain == snapshot("""\
backward #1
0 roots, 0 nodes, 0 edges, 0 leaves, depth 0
0 B held\
""")


def test_json_has_exactly_these_keys() -> None:
    """Machines get the twelve figures, in this order, and nothing else."""
    figures = json.loads(render_figures(large(), SUMMARY))

    assert list(figures) == [
        "nodes", "edges", "none_edges", "roots", "leaves", "max_depth",
        "classes", "held_bytes", "weight_bytes", "saved_bytes_by_origin", "captured_at", "other_calls",
    ]  # fmt: skip
    assert large() == msgspec.convert({**figures, "warnings": large().warnings}, Summary)


def test_markdown() -> None:
    """A report gets two tables under the place of the capture."""
    assert render_summary_markdown(summarize(product_plus_two())) == snapshot("""\
`backward #1`

| figure | value |
| --- | --- |
| roots | 1 |
| nodes | 3 |
| edges | 4 |
| none edges | 1 |
| leaves | 1 |
| max depth | 3 |
| held | 8 B |
| saved: activations | 4 B |
| saved: inputs | 4 B |

| class | nodes |
| --- | --- |
| `AccumulateGrad` | 1 |
| `AddBackward0` | 1 |
| `MulBackward0` | 1 |
""")


def test_text_of_the_program_is_data() -> None:
    """A class name with Rich markup and escape sequences is shown as it is, its control characters as escapes."""
    text = render_summary(summarize(graph(op("[red]\x1b[31m"))))

    assert r"1 [red]\x1b[31m" in text.plain


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(graphs(), st.integers(70, 120))
def test_no_line_is_wider_than_asked(record: Graph, width: int) -> None:
    """Whatever the names, the lines fit, but for warnings, which are never cut, and nothing in them is a control."""
    lines = render_summary(summarize(record), width=width).plain.split("\n")

    assert all(line.isprintable() for line in lines)
    assert all(cell_len(line) <= width for line in lines if not line.startswith("warning: "))
    assert len(lines) <= 5 + len(record.warnings)
    json.loads(render_figures(summarize(record), SUMMARY))
