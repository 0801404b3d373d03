"""Many captures: which are equal."""

import pytest
from changed_programs import changed_graph
from msgspec.structs import replace

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.groups import Grouper, name_members


def test_equal_captures_are_one_group() -> None:
    """The largest comes first, whatever the files are called; others are compared with it."""
    grouper = Grouper()
    for change in ("fewer", "", "", "clone", "", "fewer"):
        graph = changed_graph(*filter(None, [change]))
        grouper.add(replace(graph, source=f"run.{change}.py"))
    groups = grouper.groups()

    assert [group.members for group in groups] == [(1, 2, 4), (0, 5), (3,)]
    assert groups[0].diff is None
    assert [row.module for row in groups[1].diff.rows] == ["h.3"]  # type: ignore[union-attr]


def test_what_is_ignored_joins_groups() -> None:
    """Captures that differ only in what does not count are equal."""
    grouper = Grouper(lambda one, other: diff_graphs(one, other, frozenset({"order"})))
    for changes in ((), ("reordered",)):
        grouper.add(changed_graph(*changes))

    assert [group.members for group in grouper.groups()] == [(0, 1)]


@pytest.mark.parametrize(
    ("labels", "members", "expected"),
    [
        ([f"run.{rank}.json" for rank in range(8)], (0, 1, 2, 3, 4, 5, 7), "ranks 0-5, 7"),
        ([f"run.{rank}.json" for rank in range(12)], (6,), "rank 6"),
        (["a/rank3.json.gz", "a/rank10.json.gz"], (0, 1), "ranks 3, 10"),
        (["main.json", "mine.json", "other.json"], (0, 2), "main.json, other.json"),
        (["a.json", "a.json"], (0, 1), "a.json, a.json"),
    ],
)
def test_names_of_members(labels: list[str], members: tuple[int, ...], expected: str) -> None:
    """Ranks, if files differ by a number; else their names."""
    assert name_members(labels, members) == expected
