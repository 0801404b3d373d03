"""Markdown tables: nothing of the user's program becomes markup."""

import re

import pytest
from factories import product_plus_two
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from strategies import examples, graphs

from gradinspect.analyses.memory.saved_rows import saved_rows
from gradinspect.graph import Graph
from gradinspect.renderers.data.markdown import code
from gradinspect.renderers.data.summary import SAVED
from gradinspect.renderers.data.table import render_table


def test_saved_rows_in_markdown() -> None:
    """The table has a heading, a rule and one line a row."""
    assert render_table(SAVED, saved_rows(product_plus_two())[1:], "markdown") == snapshot("""\
| node | class | attribute | value | bytes | shared with | status | origin | module | source |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| 0 | `MulBackward0` | `_saved_self` | `f32[1]` | 4 B |  | live | input |  |  |
| 1 | `AddBackward0` | `_saved_alpha` | `1` |  |  |  |  |  |  |
""")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("  ", ""),
        ("fc.weight", "`fc.weight`"),
        ("</script><img onerror=x>", "`</script><img onerror=x>`"),
        ("*a* _b_ [c](d)", "`*a* _b_ [c](d)`"),
        ("a\nb", "<code>a&#92;nb</code>"),
        ("a|b", "<code>a&#124;b</code>"),
        ("`<b>`", "<code>&#96;&#60;b&#62;&#96;</code>"),
        ("重み|", "<code>重み&#124;</code>"),
    ],
)
def test_code(text: str, expected: str) -> None:
    """Plain text becomes a code span; what could end a span or a cell is written as character references."""
    assert expected == code(text)


@given(st.text())
def test_code_cannot_end_its_cell(text: str) -> None:
    """Whatever the text, it has no bar, no line break, and no backtick but the two around it."""
    written = code(text)

    assert written.isprintable()
    assert "|" not in written
    assert written.count("`") in {0, 2}


@settings(max_examples=examples(40), deadline=None)
@given(graphs())
def test_every_row_has_every_cell(record: Graph) -> None:
    """Each line of the table has the same number of cells, whatever the strings."""
    rows = saved_rows(record)
    lines = render_table(SAVED, rows, "markdown").splitlines()

    assert len(lines) == len(rows) + 2
    assert {len(re.findall(r"\|", line)) for line in lines} == {11}
