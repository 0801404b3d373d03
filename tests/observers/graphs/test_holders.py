"""What the source says of a container that holds tensors."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gradinspect.observers.graphs.holders import HolderSearch, removes_elements, stores_of


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


@pytest.mark.parametrize(
    ("body", "adds"),
    [
        ("kept = f(x)\n    kept = kept + 1", [False, False]),
        ("kept = f(x)\n    kept += 1", [False, False]),
        ("other = f(x)\n    kept = kept + 1", [True]),
        ("kept = f(x)\n    for x in y:\n        kept = kept + x", [False, True]),
        ("kept = kept + 1\n    kept += 2", [True, True]),
    ],
    ids=["assigned", "in place", "another", "in a loop", "never anew"],
)
def test_what_is_begun_anew_adds_to_nothing_earlier(body: str, adds: list[bool], tmp_path: Path) -> None:
    """A closure that makes its loss of two terms keeps no graph of its last call."""
    file = tmp_path / "program.py"
    file.write_text(f"def closure():\n    {body}\n")

    assert [store.adds for store in stores_of(str(file), "kept")] == adds


class Held:
    """Has attributes."""

    def __init__(self, **held: object) -> None:
        self.__dict__.update(held)


@pytest.mark.parametrize(
    ("holding", "path"),
    [
        (lambda tensor: [1, "no", None, tensor], "[*]"),
        (lambda tensor: {"loss": (0.5, {tensor})}, "[*][*][*]"),
        (lambda tensor: {"{}": (0.5, Held(last=tensor))}, "['{}'][1].last"),
        (lambda tensor: {(3, 4): Held(last=tensor), 5: 6}, "[...].last"),
        (lambda tensor: Held(name="x", loss=Held(last=tensor)), ".loss.last"),
        (lambda tensor: lambda: tensor, ".<closure>.tensor"),
        (lambda tensor: torch.nn.ParameterDict({"a": tensor}), ".a"),
        (lambda tensor: Held(name="tensor"), None),
    ],
)
def test_a_path_names_each_step(
    holding: Callable[[torch.Tensor], object], path: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a global of a module inward; what nothing holds has none."""
    tensor = torch.nn.Parameter(torch.ones(1))
    monkeypatch.setitem(globals(), "HOLDER", holding(tensor))
    (group,) = HolderSearch(None).groups([tensor])

    assert group.name == ("" if path is None else f"{__name__}.HOLDER{path}")
    assert group.tensors == [tensor]


@pytest.mark.parametrize(("num_lists", "is_found"), [(20, True), (120, False)])
def test_a_search_ends(num_lists: int, is_found: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # a column
    """Where a program holds more values than are worth the time, even if most of them can hold nothing."""
    tensor = torch.ones(1)
    monkeypatch.setitem(globals(), "HOLDER", [*([0] * 9_000 for _ in range(num_lists)), [tensor]])
    (group,) = HolderSearch(None).groups([tensor])

    assert bool(group.name) is is_found
