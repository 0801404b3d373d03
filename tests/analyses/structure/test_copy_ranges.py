"""What one copy of a repeated block shows for all: shapes, bytes, and where it begins a chain."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from factories import graph, leaf, op, saved
from msgspec.structs import replace

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.copy_ranges import (
    bytes_of_twins,
    copy_ranges,
    format_bytes_between,
    name_of_blocks,
    with_ranges,
)
from gradinspect.analyses.structure.folding import Scope, fold_graph, place_of_call
from gradinspect.analyses.structure.name_folding import odd_one
from gradinspect.graph import Graph, ModuleCall, Node, Storage


def experts(rows: Sequence[int], widths: Sequence[int] = (8, 8, 8, 8, 8)) -> Graph:
    """Make a sum of what experts return, each of four ops and a parameter; the one that ran first begins the sum."""
    nodes, storages = list[Node](), list[Storage]()
    for place, (count, width) in enumerate(zip(rows, widths, strict=False)):
        begin = 5 * place
        following = begin + 5 if place + 1 < len(rows) else None
        nodes.append(op("IndexAddBackward0", following, begin + 1, shape=(64, 8)))
        for inner in range(begin + 1, begin + 5):
            value = saved("_saved_self", count, width, storage=len(storages))
            storages.append(Storage(num_bytes=4 * count * width))
            after = inner + 1 if inner < begin + 4 else 5 * len(rows) + place
            nodes.append(op("SinBackward0", after, shape=(count, width), module=place, saved=(value,)))
    modules = tuple(ModuleCall(path=f"experts.{place}", class_name="Expert") for place in range(len(rows)))
    leaves = [leaf(f"experts.{place}.weight", width) for place, width in enumerate(widths[: len(rows)])]
    return graph(*nodes, *leaves, modules=modules, storages=tuple(storages))


def test_blocks_that_got_different_numbers_of_rows_are_copies() -> None:
    """Also the one that ran first, which adds to what no gradient flows to, and one that got no row."""
    (repeat,) = fold_graph(experts([13, 34, 0, 26])).items

    assert isinstance(repeat, Scope)
    assert [repeat.kind, len(repeat.copies), len(repeat.items)] == ["repeat", 3, 2]
    assert place_of_call(repeat) == 1


def test_blocks_with_larger_parameters_are_not_copies() -> None:
    """As in the levels of a U-Net; those alike beside them are."""
    items = fold_graph(experts([4] * 5, [8, 8, 8, 16, 16])).items

    assert [len(item.copies) for item in items if isinstance(item, Scope) and item.kind == "repeat"] == [2]


@pytest.mark.parametrize("is_first_left", [True, False])
def test_the_first_block_of_a_chain_is_a_copy_with_all_its_modules(*, is_first_left: bool) -> None:
    """Where edges lead nowhere does not tell blocks apart, however deep; `0 + x` has its term on the other side."""
    nodes = list[Node]()
    for place in range(4):
        begin, after = 4 * place, 4 * place + 4 if place < 3 else None
        term = (begin + 1, None) if is_first_left and after is None else (after, begin + 1)
        nodes += [
            op("AddBackward0", *term, module=2 * place),
            op("MulBackward0", begin + 2, after, module=2 * place),
            op("MmBackward0", begin + 3, 16 + place, module=2 * place + 1),
            op("SinBackward0", after, module=2 * place + 1),
        ]
    calls = [ModuleCall(path=str(place), class_name="Mixture") for place in range(4)]
    inner = [ModuleCall(path=f"{place}.expert", class_name="Expert", parent=2 * place) for place in range(4)]
    modules = tuple(call for pair in zip(calls, inner, strict=True) for call in pair)
    leaves = [leaf(f"{place}.expert.weight", 3) for place in range(4)]
    (repeat,) = fold_graph(graph(*nodes, *leaves, modules=modules)).items

    assert isinstance(repeat, Scope)
    assert len(repeat.copies) == 3


def test_calls_that_see_more_each_time_are_copies() -> None:
    """As those of a decoder that attends to what it has cached: its parameters are the same."""
    nodes = [
        op(
            name,
            place + 1 if place < 14 else None,
            *([15] if name == "MmBackward0" else []),
            shape=(2, place, 8),
            module=place // 3,
        )
        for place, name in enumerate(("MmBackward0", "SoftmaxBackward0", "CatBackward0") * 5)
    ]
    modules = tuple(ModuleCall(path="decoder", class_name="Decoder", call=call) for call in range(5))
    record = graph(*nodes, leaf("decoder.weight", 8), modules=modules)
    (repeat,) = fold_graph(record).items
    shown = with_ranges(record, (repeat,)).nodes[0].forward_outputs[0]

    assert isinstance(repeat, Scope)
    assert len(repeat.copies) == 4
    assert shown is not None
    assert shown.shape == (2, "0..12", 8)


def test_the_first_copy_shows_the_least_and_the_greatest_shape() -> None:
    """The other copies, and what is equal in all, stay as they are; the graph itself where nothing differs."""
    drawn, equal = experts([13, 34, 0, 26]), experts([4] * 4)
    shown = with_ranges(drawn, fold_graph(drawn).items)
    first = [node.forward_outputs[0] for node in shown.nodes[:2]]

    assert [info.shape for info in first if info is not None] == [(64, 8), ("0..34", 8)]
    assert shown.nodes[5:] == drawn.nodes[5:]
    assert with_ranges(equal, fold_graph(equal).items) is equal


def test_the_first_copy_shows_the_least_and_the_most_bytes() -> None:
    """Of each node, and of each scope in it."""
    drawn = experts([13, 34, 0, 26])
    held = held_bytes_by_node(drawn)
    scope = fold_graph(drawn)
    (repeat,) = scope.items

    assert bytes_of_twins(scope.items, held) == {
        range(1, 5): (0, 4 * 34 * 32),
        **{range(inner, inner + 1): (0, 34 * 32) for inner in range(1, 5)},
    }
    assert isinstance(repeat, Scope)
    assert copy_ranges(repeat) == [range(begin, begin + 5) for begin in (0, 5, 10, 15)]


@pytest.mark.parametrize(
    ("least", "most", "text"),
    [(0, 10, "0..10 B"), (2048, 4096, "2.0..4.0 KiB"), (512, 4096, "512 B..4.0 KiB"), (7, 7, "7 B")],
)
def test_bytes_between(least: int, most: int, text: str) -> None:
    """A unit is written once, and one number where both are alike."""
    assert format_bytes_between(least, most) == text


@pytest.mark.parametrize(
    ("called", "name", "others"),
    [
        (["norms.{}", "convs.{}"], "norms.1-3, convs.1-3", "norms.1-2, convs.1-2"),
        (["bce", "D"], "bce, D", "bce, D"),
        (["a.{}", "b.{}", "c.{}"], "a.1-3, b.1-3, …", "a.1-2, b.1-2, …"),
        (["h.{}"], "h.1-3  Block", "h.1-2  Block"),
    ],
)
def test_copies_are_named_by_their_calls(called: list[str], name: str, others: str) -> None:
    """A copy of several calls by the first two, where one name would hide what else it is made of."""
    paths = [path.format(number) for number in (3, 2, 1, 0) for path in called]
    ops = [f"{chr(65 + at)}Backward0" for at in range(len(called)) for _ in "12"] + ["ReluBackward0"]
    nodes = [
        op(kind, copy * len(ops) + at + 1, module=copy * len(called) + at // 2 if at // 2 < len(called) else None)
        for copy in range(4)
        for at, kind in enumerate(ops)
    ]
    whole = graph(*nodes, leaf("w", 3), modules=tuple(ModuleCall(path=path, class_name="Block") for path in paths))
    repeat = fold_graph(whole).items[0]

    assert isinstance(repeat, Scope)
    assert len(repeat.copies) == 2  # the last one leads to a leaf
    assert (name_of_blocks(whole, repeat), name_of_blocks(whole, repeat, slice(1, None))) == (name, others)


def opcodes_for(count: int) -> int:
    """Count what Python executes to compare the copies in a chain of so many nodes."""
    names = ("SinBackward0", "MulBackward0", "ExpBackward0")
    drawn = graph(*(op(names[place % 3], place + 1) for place in range(count)), leaf("w", 3))
    folded = fold_graph(drawn)
    repeat = folded.items[0]
    executed = 0

    def counted(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        nonlocal executed
        frame.f_trace_opcodes = True
        executed += event == "opcode"
        return counted

    assert isinstance(repeat, Scope)
    before = sys.gettrace()
    sys.settrace(counted)
    try:
        copies = copy_ranges(repeat)
        odd = odd_one([len(copy) for copy in copies])
        shown = with_ranges(drawn, folded.items)
        differing = bytes_of_twins(folded.items, [0] * len(drawn.nodes))
    finally:
        sys.settrace(before)
    assert [len(copies), odd, differing] == [count // 3 - 1, None, {}]
    assert shown is drawn
    return executed


def test_many_copies_take_as_long_as_so_many_nodes() -> None:
    """Not their square: an RNN has as many steps as its text has characters."""
    few = opcodes_for(900)

    assert few > 900
    assert opcodes_for(3_600) < 5 * few


def test_copies_whose_names_have_no_numbers_are_named_by_the_first_and_the_last() -> None:
    """As many as there are."""
    names = ("coarse", "middle", "fine", "finest")
    drawn = experts([4] * 4)
    named = replace(drawn, modules=tuple(ModuleCall(path=name, class_name="Expert") for name in names))
    (repeat,) = fold_graph(named).items

    assert isinstance(repeat, Scope)
    assert name_of_blocks(named, repeat) == "coarse … finest  Expert"
