"""Held memory: each storage once, its kind, the rows, the tree, the observations."""

import msgspec
import pytest
from factories import graph, leaf, op, saved, tensor_info
from hypothesis import given
from strategies import graphs

from gradinspect.analyses.memory.held import Memory, measure_memory
from gradinspect.analyses.memory.notes import memory_notes
from gradinspect.analyses.memory.rows import left_out, rows_by_line, rows_by_operator, rows_by_storage
from gradinspect.analyses.memory.tree import ModuleBytes, largest_modules, module_tree
from gradinspect.analyses.selection.node_conditions import nodes_in_module
from gradinspect.analyses.structure.name_folding import OddOne
from gradinspect.analyses.summary import summarize
from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, Graph, ModuleCall, SavedTensor, SavedValue, Storage
from gradinspect.renderers.terminal.memory.held import MemoryPage


def packed(storage: int, status: str = "packed") -> SavedValue:
    """Make a value that a hook has taken."""
    return SavedValue(name="_saved_self", kind="tensor", status=status, held_storages=(storage,))  # type: ignore[arg-type]


def blocks() -> Graph:
    """Three equal blocks, an activation that two of them share, a parameter, a loss outside."""
    return graph(
        op("LossBackward0", 1, saved=(saved("_saved_self", 2, storage=3),), frame=1),
        op("AddmmBackward0", 2, module=3, saved=(saved("_saved_mat1", 16, storage=0),), frame=0),
        op("AddmmBackward0", 3, module=2, frame=0, saved=(
            saved("_saved_mat1", 16, storage=1), saved("_saved_mat2", 8, storage=4, origin="parameter"),
        )),
        op("AddmmBackward0", 4, module=1, saved=(
            saved("_saved_mat1", 16, storage=2), saved("_saved_result", 16, storage=1, origin="output"),
        )),
        leaf("h.0.weight", 8, storage=4),
        storages=(
            Storage(num_bytes=64), Storage(num_bytes=64), Storage(num_bytes=64), Storage(num_bytes=8),
            Storage(num_bytes=32, origin="parameter", name="h.0.weight"),
        ),
        modules=(
            ModuleCall(path="", class_name="Net"),
            *(ModuleCall(path=f"h.{i}", class_name="Block", parent=0) for i in range(3)),
        ),
        frames=(Frame(file="net.py", line=3, code="x = h(x)"), Frame(file="net.py", line=9, code="loss = x.sum()")),
    )  # fmt: skip


def test_every_storage_counts_once() -> None:
    """For the saver with the smallest id, and parameters apart."""
    memory = measure_memory(blocks())

    assert (memory.total_bytes, memory.extra_bytes) == (232, 200)
    assert {kind: size for kind, size in memory.bytes_by_kind.items() if size} == {"activation": 200, "parameter": 32}
    assert [(held.storage, held.counted_by, held.savers) for held in memory.storages] == [
        (3, 0, (0,)), (0, 1, (1,)), (1, 2, (2, 3)), (4, 2, (2,)), (2, 3, (3,)),
    ]  # fmt: skip


def test_rows_tell_what_they_share() -> None:
    """By operator there is nothing to share, by line the second line of a storage shares it."""
    memory = measure_memory(blocks())
    by_operator = {
        row.label: (row.num_bytes, row.shared_bytes, row.only_bytes) for row in rows_by_operator(blocks(), memory)
    }
    by_line = {row.label: (row.num_bytes, row.shared_bytes, row.only_bytes) for row in rows_by_line(blocks(), memory)}

    assert by_operator == {"AddmmBackward0": (192, 0, 192), "LossBackward0": (8, 0, 8)}
    assert by_line == {"net.py:3": (128, 0, 64), "(no line recorded)": (64, 64, 64), "net.py:9": (8, 0, 8)}


def test_equal_blocks_are_one_row_of_the_tree() -> None:
    """With their sum; unfolded, each has its own."""
    memory = measure_memory(blocks())
    (model, outside) = module_tree(blocks(), memory)
    (folded,) = model.children

    assert (outside.label, outside.own_bytes) == ("(outside modules)", 8)
    assert (model.label, model.own_bytes, model.total_bytes, model.only_bytes) == ("model", 0, 192, 192)
    assert (folded.label, folded.copies, folded.total_bytes) == ("h.0-2", 3, 192)
    single = module_tree(blocks(), memory, folds=False)[0].children
    assert [(module.label, module.own_bytes, module.only_bytes) for module in single] == [
        ("h.0", 64, 64), ("h.1", 64, 0), ("h.2", 64, 64),
    ]  # fmt: skip


def test_the_odd_one_of_equal_blocks_is_known() -> None:
    """By the totals of a row's modules; blocks of nearly one size have none."""
    sizes = (10, 12, 90, 11)
    saving = [op("AddmmBackward0", n + 1, module=n + 1, saved=(saved("x", storage=n),)) for n in range(len(sizes))]
    record = graph(
        *saving, leaf("x", 3),
        storages=tuple(Storage(num_bytes=size, origin="activation") for size in sizes),
        modules=(ModuleCall(path="", class_name="Net"),
                 *(ModuleCall(path=f"h.{n}", class_name="Block", parent=0) for n in range(len(sizes)))),
    )  # fmt: skip
    ((folded,),) = (model.children for model in module_tree(record, measure_memory(record)))
    ((alike,),) = (model.children for model in module_tree(blocks(), measure_memory(blocks()))[:1])

    assert folded.odd_one == OddOne("h.2", 90 / 11)
    assert alike.odd_one is None


def test_blocks_whose_modules_are_called_by_one_of_them_are_equal() -> None:
    """`net.0.seq` calls `net.0.conv`, which is no part of it by name: its label leaves out the number of the block."""
    saving = [op("ConvBackward0", n + 1, module=3 * n + 3, saved=(saved("x", storage=n),)) for n in range(3)]
    calls = [
        call
        for n in range(3)
        for call in (
            ModuleCall(path=f"net.{n}", class_name="Block", parent=0),
            ModuleCall(path=f"net.{n}.seq", class_name="Sequential", parent=3 * n + 1),
            ModuleCall(path=f"net.{n}.conv", class_name="Conv1d", parent=3 * n + 2),
        )
    ]
    record = graph(
        *saving, leaf("x", 3), modules=(ModuleCall(path="", class_name="Net"), *calls),
        storages=tuple(Storage(num_bytes=64, origin="activation") for _ in range(3)),
    )  # fmt: skip
    ((block,),) = (model.children for model in module_tree(record, measure_memory(record)))
    (inside,) = block.children
    single = module_tree(record, measure_memory(record), folds=False)[0].children[0].children[0].children

    assert (block.label, block.copies, inside.label) == ("net.0-2", 3, "seq")
    assert [(part.label, part.copies) for part in inside.children] == [("conv", 3)]
    assert [(part.label, part.path) for part in single] == [("conv", "net.0.conv")]


def test_parts_of_blocks_without_a_row_are_one_row_each() -> None:
    """`layers.0` is a list, and no module that is called: its attention and its MLP take turns."""
    saving = [
        op("AddmmBackward0", place + 1, module=place + 1, saved=(saved("x", storage=place),)) for place in range(6)
    ]
    paths = [(f"layers.{layer}.{part}", name) for layer in range(3) for part, name in enumerate(("Attention", "MLP"))]
    record = graph(
        *saving, leaf("x", 3),
        storages=tuple(Storage(num_bytes=64 + place, origin="activation") for place in range(6)),
        modules=(ModuleCall(path="", class_name="Net"),
                 *(ModuleCall(path=path, class_name=name, parent=0) for path, name in paths)),
    )  # fmt: skip
    (model,) = module_tree(record, measure_memory(record))

    assert [(module.label, module.class_name, module.copies, module.total_bytes) for module in model.children] == [
        ("layers.0-2.0", "Attention", 3, 3 * 64 + 6), ("layers.0-2.1", "MLP", 3, 3 * 64 + 9),
    ]  # fmt: skip


def modules_holding(*calls: tuple[str, str, str, int]) -> Graph:
    """Make module calls, each a path, a class, the path of its caller, and what it holds itself."""
    places = {path: place for place, (path, *_) in enumerate(calls, start=1)}
    saving = [
        op("SinBackward0", place, module=place, saved=(saved("x", storage=place - 1),)) for place in places.values()
    ]
    return graph(
        *saving, leaf("x", 3),
        storages=tuple(Storage(num_bytes=size, origin="activation") for *_, size in calls),
        modules=(ModuleCall(path="", class_name="Net"), *(
            ModuleCall(path=path, class_name=name, parent=places.get(caller, 0)) for path, name, caller, _ in calls
        )),
    )  # fmt: skip


def rows_of(record: Graph) -> list[tuple[str, int, tuple[int, int]]]:
    """List the modules with a row inside of the outermost one."""
    ((*modules,),) = (model.children for model in module_tree(record, measure_memory(record)))
    rows = []
    while modules:
        module = modules.pop(0)
        rows.append((module.label, module.copies, module.between))
        modules = [*module.children, *modules]
    return rows


@pytest.mark.parametrize("path", ["h.0.act", "Attention"])
def test_what_blocks_share_or_make_anew_belongs_to_the_block_that_calls_it(path: str) -> None:
    """An activation that all have, under the name in the first one; a module without a path, made in forward."""
    callers = ["h.0", "h.1", "other"]
    calls = [
        ModuleCall(path="", class_name="Net"),
        *(ModuleCall(path=caller, class_name="Block", parent=0) for caller in callers),
        *(ModuleCall(path=path, class_name="Own", call=place, parent=place) for place in (1, 2, 3)),
    ]
    saving = [
        op("SinBackward0", place, module=3 + place, saved=(saved("x", storage=place - 1),)) for place in (1, 2, 3)
    ]
    storages = tuple(Storage(num_bytes=num_bytes, origin="activation") for num_bytes in (8, 40, 100))
    record = graph(*saving, leaf("x", 3), storages=storages, modules=tuple(calls))
    (model,) = module_tree(record, measure_memory(record), folds=False)
    (folded,) = module_tree(record, measure_memory(record))

    assert [(block.label, block.total_bytes, block.only_bytes) for block in model.children] == [
        ("h.0", 8, 8), ("h.1", 40, 40), ("other", 100, 100),
    ]  # fmt: skip
    own = "act" if path == "h.0.act" else path
    assert [block.children[0].label for block in model.children] == [own, own, path]
    assert [(block.label, block.copies, block.total_bytes) for block in folded.children] == [
        ("h.0-1", 2, 48), ("other", 1, 100),
    ]  # fmt: skip


def test_equal_modules_are_one_row_wherever_they_are() -> None:
    """Norms that take turns with other modules, as on the other screens: the row is in the place of the first."""
    record = modules_holding(
        ("norm1", "LayerNorm", "", 8), ("attn", "Attention", "", 40), ("norm2", "LayerNorm", "", 16),
        ("mlp", "MLP", "", 80),
    )  # fmt: skip

    assert rows_of(record) == [("norm1-2", 2, (8, 16)), ("attn", 1, (0, 0)), ("mlp", 1, (0, 0))]


def test_modules_whose_names_end_in_a_number_are_one_row() -> None:
    """With the least and the most that one of them holds; those of another class, or with more inside, are not."""
    record = modules_holding(
        ("stem1", "Conv2d", "", 5), ("up1", "Up", "", 8), ("up1.conv1", "Conv2d", "up1", 4),
        ("up1.conv2", "Conv2d", "up1", 4), ("up2", "Up", "", 2), ("up2.conv1", "Conv2d", "up2", 2),
        ("up2.conv2", "Conv2d", "up2", 1), ("up3", "Up", "", 1), ("up3.conv1", "Conv2d", "up3", 1),
        ("up4", "Out", "", 1),
    )  # fmt: skip

    assert rows_of(record) == [
        ("stem1", 1, (0, 0)), ("up1-2", 2, (5, 16)), ("conv1-2", 4, (1, 4)),
        ("up3", 1, (0, 0)), ("conv1", 1, (0, 0)), ("up4", 1, (0, 0)),
    ]  # fmt: skip


def test_a_row_stands_for_no_module_that_is_not_there() -> None:
    """Stages of three and two blocks are two rows, and so are parts of lists that are no modules."""
    stages = [(f"layer{stage}", "Sequential", "", 1) for stage in (1, 2)]
    blocks = [(f"layer{stage}.{block}", "Block", f"layer{stage}", 2) for stage in (1, 2) for block in range(4 - stage)]
    lists = [(f"layers{stage}.{block}.a", "Block", "", 2) for stage in (1, 2) for block in range(3 - stage)]

    assert rows_of(modules_holding(*stages, *blocks)) == [
        ("layer1", 1, (0, 0)), ("0-2", 3, (2, 2)), ("layer2", 1, (0, 0)), ("0-1", 2, (2, 2)),
    ]  # fmt: skip
    assert rows_of(modules_holding(*lists)) == [("layers1.0-1.a", 2, (2, 2)), ("layers2.0.a", 1, (0, 0))]


@pytest.mark.parametrize(
    ("top", "labels"), [(1, ["model", "4 more"]), (2, ["model", "h.0", "h.1", "h.2", "1 more"]), (9, None)]
)
def test_only_the_largest_modules(top: int, labels: list[str] | None) -> None:
    """The others become one row, so that own bytes add up; equal ones stay together."""
    tree = module_tree(blocks(), measure_memory(blocks()), folds=False)
    kept = largest_modules(tree, top)
    rows = [row for module in kept for row in (module, *module.children)]

    assert sum(row.own_bytes for row in rows) == 200
    assert kept == tree if labels is None else [row.label for row in rows] == labels


def test_kinds_of_memory() -> None:
    """Packed, checkpointed, and what is packed by one node and live at another."""
    storages = (Storage(num_bytes=4), Storage(num_bytes=8), Storage(num_bytes=16), Storage(num_bytes=32))
    values = (packed(0), packed(1, "checkpointed"), packed(2), saved("_saved_other", 4, storage=2, origin="output"))
    record = graph(op("A", saved=(*values, saved("_saved_x", 1, storage=3, origin="input"))), storages=storages)
    memory = measure_memory(record)

    assert {held.storage: held.held_as for held in memory.storages} == {
        0: "packed",
        1: "checkpoint",
        2: "output",
        3: "input",
    }
    assert memory.num_recomputed == 1


def cast_graph(*, keeps_source: bool) -> Graph:
    """An activation and its bf16 copy, used through a transpose."""
    copy = SavedTensor(info=tensor_info(8, dtype="bfloat16"), num_bytes=16, storage=0, made_by=1)
    source = SavedTensor(info=tensor_info(8), num_bytes=32, storage=1, made_by=3)
    values = (SavedValue(name="_saved_mat2", kind="tensor", tensor=copy, status="live", origin="activation"),)
    original = (SavedValue(name="_saved_result", kind="tensor", tensor=source, status="live", origin="output"),)
    return graph(
        op("MmBackward0", 1, saved=values),
        op("TBackward0", 2),
        op("ToCopyBackward0", 3),
        op("ReluBackward0", None, shape=(8,), saved=original if keeps_source else ()),
        storages=(Storage(num_bytes=16), Storage(num_bytes=32)),
    )


def test_a_cast_is_told_from_its_source() -> None:
    """Through views; kept beside its source it is the same data twice."""
    memory = measure_memory(cast_graph(keeps_source=True))
    (note,) = memory_notes(cast_graph(keeps_source=True), memory)

    assert memory.bytes_by_kind["cast"] == 16
    assert (note.kind, note.num_bytes) == ("twice", 16)
    assert note.text == "#3 f32[8], 32 B, is kept again as #1 bf16[8], 16 B"
    assert memory_notes(cast_graph(keeps_source=False), measure_memory(cast_graph(keeps_source=False))) == ()


def _slice_of(whole: Storage, *, function: str = "main", module: int | None = None) -> Graph:
    """Make a graph of a node that saves a part of what another one made, twice."""
    value = saved("_saved_self", 8, storage=0)
    assert value.tensor is not None
    part = msgspec.structs.replace(value, tensor=msgspec.structs.replace(value.tensor, made_by=1))
    return graph(
        op("A", 1, saved=(part, part), frame=0, module=module),
        op("B", frame=0, module=module),
        storages=(whole,),
        modules=(ModuleCall(path="attn", class_name="MultiheadAttention"),),
        frames=(Frame(file="a.py", line=4, function=function),),
    )


def test_a_slice_keeps_the_whole() -> None:
    """The same slice twice counts once; the note says how much a clone() would free."""
    record = _slice_of(Storage(num_bytes=1 << 20))
    (note,) = memory_notes(record, measure_memory(record))

    assert (note.kind, note.num_bytes) == ("slice", (1 << 20) - 32)
    assert note.text == "#1 f32[8] at #0 holds 32 B, keeps 1.0 MiB (a.py:4): clone() it to free 1.0 MiB"


def test_a_slice_of_what_lives_anyway_is_no_waste() -> None:
    """A batch is a part of a data set that the program holds, and a few bytes matter to nobody."""
    named = _slice_of(Storage(num_bytes=1 << 20, name="images"))
    small = _slice_of(Storage(num_bytes=128))

    assert memory_notes(named, measure_memory(named)) == memory_notes(small, measure_memory(small)) == ()


def test_nobody_is_told_to_change_torch() -> None:
    """Inside a module of torch the line is that of its caller: what is kept is said, and no clone() is asked for."""
    inside = _slice_of(Storage(num_bytes=1 << 20), function="Block.forward", module=0)
    own = _slice_of(Storage(num_bytes=1 << 20), function="MultiheadAttention.forward", module=0)
    (told,) = memory_notes(inside, measure_memory(inside))
    (advised,) = memory_notes(own, measure_memory(own))

    assert told.text == "#1 f32[8] at #0 holds 32 B, keeps 1.0 MiB (a.py:4)"
    assert advised.text.endswith(": clone() it to free 1.0 MiB")


def test_a_frozen_module_says_why_it_keeps_something() -> None:
    """Its weight is no trained leaf, its gradient goes on to one that is."""
    record = graph(
        op("MulBackward0", 1, None, module=1, saved=(
            saved("_saved_self", 8, storage=0), saved("_saved_other", 8, storage=1, origin="parameter"),
        )),
        leaf("first.weight", 8, storage=2),
        storages=(
            Storage(num_bytes=32), Storage(num_bytes=32, origin="parameter", name="mid.weight"), Storage(num_bytes=32),
        ),
        modules=(ModuleCall(path="", class_name="Net"), ModuleCall(path="mid", class_name="Scale", parent=0)),
    )  # fmt: skip
    (note,) = memory_notes(record, measure_memory(record))

    assert note.text == "'mid' is frozen and keeps 32 B, because gradients pass through it to 'first.weight'"


def test_one_module_can_be_asked_for() -> None:
    """By a pattern; a wrong one names the nearest."""
    memory = measure_memory(blocks(), nodes_in_module(blocks(), "h.[01]"))

    assert memory.total_bytes == 160
    with pytest.raises(GradInspectError, match="No module matches"):
        nodes_in_module(blocks(), "h.9")


def test_zero_is_no_answer_where_nothing_can_be_known() -> None:
    """A freed graph, and a capture without storages."""
    freed = SavedValue(name="_saved_self", kind="tensor", status="freed")
    no_storage = SavedTensor(info=tensor_info(2), num_bytes=8)
    bare = SavedValue(name="_saved_self", kind="tensor", status="live", tensor=no_storage)

    with pytest.raises(GradInspectError, match="Backward has already freed"):
        measure_memory(graph(op("A", saved=(freed,))))
    with pytest.raises(GradInspectError, match="no byte sizes"):
        measure_memory(graph(op("A", saved=(bare,))))
    assert measure_memory(graph(op("A"))).total_bytes == 0


@pytest.mark.slow
@given(graphs())
def test_any_graph_adds_up(record: Graph) -> None:
    """All groupings, all kinds, the summary, and a table that was cut."""
    try:
        memory = measure_memory(record)
    except GradInspectError:
        return

    def own(tree: tuple[ModuleBytes, ...]) -> int:
        return sum(module.own_bytes + own(module.children) for module in tree)

    def check(memory: Memory) -> None:
        assert sum(memory.bytes_by_kind.values()) == memory.total_bytes
        for rows in (rows_by_operator(record, memory), rows_by_line(record, memory), rows_by_storage(record, memory)):
            shown, rest = left_out(rows, 2)
            assert sum(row.num_bytes for row in shown) + (rest.num_bytes if rest else 0) == memory.extra_bytes
        for folds in (False, True):
            tree = module_tree(record, memory, folds=folds)
            assert own(tree) == sum(module.total_bytes for module in tree) == memory.extra_bytes
        assert all(note.num_bytes > 0 for note in memory_notes(record, memory) if note.kind == "slice")

    check(memory)
    figures = summarize(record)
    assert (memory.extra_bytes, memory.total_bytes - memory.extra_bytes) == (figures.held_bytes, figures.weight_bytes)
    assert all(held.shown_bytes <= held.num_bytes for held in memory.storages)


def test_modules_nested_without_end_do_not_overflow() -> None:
    """A capture file may hold what no program does."""
    modules = [ModuleCall(path="m", class_name="M")]
    modules += [ModuleCall(path=f"m{'.x' * depth}", class_name="M", parent=depth - 1) for depth in range(1, 1500)]
    record = graph(
        op("A", module=1499, saved=(saved("_saved_self", 2, storage=0),)),
        storages=(Storage(num_bytes=8),),
        modules=tuple(modules),
    )
    tree = module_tree(record, measure_memory(record))

    assert sum(module.total_bytes for module in tree) == 8


def test_bytes_of_devices_add_up_to_what_is_held() -> None:
    """Without weights, the device with most first; a graph on one device has one."""
    two = graph(
        op("MulBackward0", 1, saved=(saved("_saved_self", 2, storage=0), saved("_saved_other", 2, storage=1))),
        leaf("weight", 8, storage=2),
        storages=(
            Storage(num_bytes=10, device="sim:0"), Storage(num_bytes=64, device="sim:1"),
            Storage(num_bytes=500, device="sim:0", origin="parameter", name="weight"),
        ),
    )  # fmt: skip
    memory = measure_memory(two)

    assert list(memory.extra_bytes_by_device.items()) == [("sim:1", 64), ("sim:0", 10)]
    assert [held.device for held in memory.storages] == ["sim:0", "sim:1"]
    assert measure_memory(blocks()).extra_bytes_by_device == {"cpu": measure_memory(blocks()).extra_bytes}

    lines = [line.plain.split() for line in MemoryPage(width=80).head(memory, two)]

    assert [words[:4] for words in lines if words[0] == "on"] == [
        ["on", "sim:1", "64", "B"],
        ["on", "sim:0", "10", "B"],
    ]
    assert not [line for line in MemoryPage(width=80).head(measure_memory(blocks()), blocks()) if " on " in line.plain]
