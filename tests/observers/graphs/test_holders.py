"""What the source says of a container that holds tensors."""

import ast
from pathlib import Path

import pytest

from gradinspect.observers.graphs.holders import removes_elements, stores_of


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("h = h[-3:]", True),
        ("self.h = self.h[-3:]", True),
        ("h = [one.detach() for one in h][-3:]", True),
        ("h[:] = h[-3:]", True),
        ("del h[0]", True),
        ("h.pop(0)", True),
        ("oldest = h.popleft()", True),
        ("h: deque = deque(maxlen=3)", True),
        ("a, h = [], deque([], maxlen=3)", True),
        ("h[step % 3] = x", True),
        ("h.append(x)", False),
        ("h[step] = x", False),
        ("h = h + [x]", False),
        ("loss = sum(h[-3:])", False),
        ("other.pop()", False),
        ("if h: print(h)", False),
    ],
)
def test_a_statement_that_keeps_only_a_part(statement: str, expected: bool) -> None:  # a column
    """A window of the latest elements is told apart from a list that grows, whatever is read from it."""
    (parsed,) = ast.parse(statement).body

    assert removes_elements(parsed, "h") is expected


@pytest.mark.parametrize(
    ("line", "stores"),
    [
        ("w, kept = x, []", False),
        ("kept, w = x, []", True),
        ("[w, kept] = (x, None)", False),
        ("w, *kept = x, []", True),
        ("w, kept = pair", True),
        ("w = kept = []", False),
        ("w = kept = x", True),
        ("kept = []", False),
        ("kept.append(x)", True),
    ],
)
def test_a_statement_that_stores_under_a_name(line: str, stores: bool, tmp_path: Path) -> None:  # a column
    """An empty container is no store, also where it is one of several values that are assigned at once."""
    file = tmp_path / "program.py"
    file.write_text(f"x = pair = 1\n{line}\n")

    assert [store.line for store in stores_of(str(file), "kept")] == ([2] if stores else [])
