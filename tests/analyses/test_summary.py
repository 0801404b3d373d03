"""The figures at the head of every report."""

import msgspec
import pytest
from factories import graph, leaf, op, product_plus_two, saved
from hypothesis import given, settings
from strategies import examples, graphs

from gradinspect.analyses.memory.saved_rows import saved_rows
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.summary import Summary, summarize
from gradinspect.graph import CaptureKind, CapturePoint, Frame, Graph, SavedValue, Storage


def test_a_small_graph() -> None:
    """Every figure of `b = a * (a + 2)` is what one counts by hand."""
    expected = Summary(
        nodes=3,
        edges=4,
        none_edges=1,
        roots=1,
        leaves=1,
        max_depth=3,
        classes={"AccumulateGrad": 1, "AddBackward0": 1, "MulBackward0": 1},
        held_bytes=8,
        weight_bytes=0,
        saved_bytes_by_origin={"parameter": 0, "buffer": 0, "input": 4, "output": 0, "activation": 4},
        captured_at="backward #1",
    )

    assert expected == summarize(product_plus_two())


def test_an_empty_graph() -> None:
    """A graph without nodes has figures too."""
    figures = summarize(graph(roots=()))

    assert (figures.nodes, figures.max_depth, figures.classes, figures.held_bytes) == (0, 0, {}, 0)


def test_classes_are_ordered_by_count_then_name() -> None:
    """The most frequent class comes first; equal counts go by name."""
    record = graph(op("B", 1), op("C", 2), op("C", 3), op("A"))

    assert list(summarize(record).classes.items()) == [("C", 2), ("A", 1), ("B", 1)]


def test_depth_is_the_longest_path_not_the_shortest() -> None:
    """A short cut and a second root do not hide the long way round, and a deep chain needs no recursion."""
    record = graph(op("A", 3), op("B", 2, 4), op("C", 3), op("D", 4), leaf("w", 1), roots=(0, 1))

    assert summarize(record).max_depth == 4
    assert summarize(graph(*(op("A", i + 1) for i in range(50_000)), op("A"))).max_depth == 50_001


def test_a_storage_counts_once_and_only_when_saved() -> None:
    """Two views of one storage count it once, whole; a leaf's storage that nothing saves does not count."""
    record = graph(
        op("A", 1, saved=(saved("_saved_self", 1, storage=0), saved("_saved_other", 2, storage=0))),
        op("B", 2, saved=(saved("_saved_self", 1, storage=0),)),
        leaf("w", 100, storage=1),
        storages=(Storage(num_bytes=64, origin="activation"), Storage(num_bytes=400, origin="parameter")),
    )

    assert summarize(record).held_bytes == 64
    assert held_bytes_by_node(record) == [64, 0, 0]


def test_what_a_storage_without_origin_is() -> None:
    """Its saved values say what it is; a pack hook's copy, which has none, is an activation."""
    packed = SavedValue(name="_saved_other", kind="tensor", status="packed", packed_as="tuple", held_storages=(1, 2))
    record = graph(
        op("A", saved=(
            packed, saved("_saved_self", 1, storage=0, origin="output"), saved("x", 1, storage=2, origin="input"),
        )),
        storages=(Storage(num_bytes=1), Storage(num_bytes=2), Storage(num_bytes=4)),
    )  # fmt: skip
    by_origin = summarize(record).saved_bytes_by_origin

    assert by_origin == {"parameter": 0, "buffer": 0, "input": 4, "output": 1, "activation": 2}


@pytest.mark.parametrize(
    ("kind", "number", "frame", "expected"),
    [
        ("backward", 2, 0, "backward #2  train.py:41  loss.backward()"),
        ("grad", 1, 0, "autograd.grad #1  train.py:41  loss.backward()"),
        ("backward", None, 1, "backward  train.py:7"),
        ("end", None, None, "end of train.py"),
        ("call", None, None, "call of train.py"),
    ],
)
def test_where_it_was_captured(kind: CaptureKind, number: int | None, frame: int | None, expected: str) -> None:
    """The moment, the line and its text, as far as they are known."""
    frames = (Frame(file="train.py", line=41, code="loss.backward()"), Frame(file="train.py", line=7))
    point = CapturePoint(kind=kind, number=number, frame=frame)

    assert expected == summarize(graph(op("A"), frames=frames, captured_at=point)).captured_at


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(graphs())
def test_figures_agree_with_each_other(record: Graph) -> None:
    """Parts add up to their totals, by classes, by origins and by rows of the saved table, whatever the graph."""
    figures = summarize(record)

    assert figures.nodes == sum(figures.classes.values())
    assert figures.held_bytes + figures.weight_bytes == sum(figures.saved_bytes_by_origin.values())
    assert figures.held_bytes == sum(row.own_bytes for row in saved_rows(record))
    assert figures.max_depth <= figures.nodes
    assert figures == msgspec.convert(msgspec.to_builtins(figures), Summary)
