"""Conditions that fail a pull request."""

import pytest
from changed_programs import changed_graph

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.gates import failure, parse_gate
from gradinspect.errors import GradInspectError


@pytest.mark.parametrize(
    ("condition", "change", "expected"),
    [
        ("bytes>5%", "autocast", "bytes>5%: +1.8 KiB (+37.9%)"),
        ("bytes>1KiB", "autocast", "bytes>1KiB: +1.8 KiB (+37.9%)"),
        ("bytes>50%", "autocast", None),
        ("bytes>0", "half", None),
        ("nodes>3", "clone", "nodes>3: +4 (+5.4%)"),
        ("nodes > 4", "clone", None),
        ("lost-gradient", "frozen", "lost-gradient: h.1.attn.weight"),
        ("lost-gradient", "fewer", "lost-gradient: "),
        ("lost-gradient", "clone", None),
        ("added", "clone", "added: 4 nodes"),
        ("operator", "sigmoid", "operator: 4 nodes"),
        ("dtype", "half", "dtype: 44 nodes"),
        ("moved", "reordered", "moved: 1 module"),
        ("shape", "half", None),
    ],
)
def test_a_condition(condition: str, change: str, expected: str | None) -> None:
    """It fails with its figures, or it does not."""
    said = failure(parse_gate(condition), diff_graphs(changed_graph(), changed_graph(change)))

    assert said is None if expected is None else str(said).startswith(expected)


@pytest.mark.parametrize("text", ["bytes", "bytes>", "bytes>much", "memory>5%", "lost", "bytes>1.2.3%", ""])
def test_no_condition(text: str) -> None:
    """It is quoted, and the hint shows how to write one."""
    with pytest.raises(GradInspectError, match="bytes>5%") as error:
        parse_gate(text)

    assert f"'--fail-on {text}'" in error.value.message
