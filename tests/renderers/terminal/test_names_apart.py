"""Names of real models in the tables of all verbs: no two different ones are written alike."""

import re
from collections.abc import Callable, Iterator, Sequence

import pytest
from factories import gradient_stats, graph, leaf, op, product_plus_two
from hypothesis import given, settings
from hypothesis import strategies as st
from model_names import PARAMETERS
from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text
from step_record import step_record
from strategies import examples

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.records import ChangedRow, LeafChange, ModuleChange
from gradinspect.analyses.gradients.folded import unfolded_flow, unfolded_moves, unfolded_parameters
from gradinspect.analyses.gradients.observed import FlowRow, ParameterRow
from gradinspect.analyses.gradients.stepping import Passed, Step
from gradinspect.analyses.gradients.steps import GradientStep, Move
from gradinspect.analyses.memory.flops import CountedFlops, FlopRow
from gradinspect.analyses.memory.rows import MemoryRow
from gradinspect.analyses.memory.saved_rows import SavedRow
from gradinspect.analyses.memory.step import AliveRow, Origin
from gradinspect.analyses.planning.changes import Checkpoint, NamedPlace, Plan
from gradinspect.analyses.planning.report import PlanReport
from gradinspect.analyses.planning.search import FoundPlans, PlanOutcome
from gradinspect.analyses.selection.rows import ALL_ROWS
from gradinspect.graph import FoundNode, ModuleCall, Node
from gradinspect.renderers.diff_words import Side
from gradinspect.renderers.terminal.diff import DiffPage
from gradinspect.renderers.terminal.found import FoundPage
from gradinspect.renderers.terminal.gradients.call import GradientsPage
from gradinspect.renderers.terminal.gradients.several_calls import StepsPage
from gradinspect.renderers.terminal.memory.flops import FlopsPage
from gradinspect.renderers.terminal.memory.held import MemoryPage
from gradinspect.renderers.terminal.memory.plan import PlanPage
from gradinspect.renderers.terminal.memory.step import StepMemoryPage
from gradinspect.renderers.terminal.nodes.steps import StepPage
from gradinspect.renderers.terminal.saved_table import render_folded_table, render_saved_table
from gradinspect.renderers.terminal.trees.tree import TreeOptions, render_tree

MODULE = "encoder.layers.0.self_attn"
SAVED = SavedRow(node=7, node_name="AddmmBackward0", attribute="_saved_x", kind="tensor", value="f32[768, 3072]",
                 num_bytes=4096, own_bytes=4096, status="live")  # fmt: skip


LONG = st.lists(st.text("abx_", min_size=1, max_size=9), min_size=2, max_size=6, unique=True).map(
    lambda parts: [f"{'of_a_long_name.' * 5}{part}{'.of_a_long_name' * 5}" for part in parts]
)
REAL = st.sampled_from(sorted(PARAMETERS)).flatmap(
    lambda model: st.lists(st.sampled_from(PARAMETERS[model]), min_size=2, max_size=9, unique=True)
)


def _saved(names: Sequence[str], width: int) -> list[Text]:
    rows = [replace(SAVED, module=name, module_name=name) for name in _spelled(names)]
    return list(render_folded_table(rows, width=width, top=len(rows)))


def _attributes(names: Sequence[str], width: int) -> list[Text]:
    return list(render_saved_table([replace(SAVED, attribute=f"_saved_{name}") for name in names], width=width))


def _modules_found(names: Sequence[str], width: int) -> list[Text]:
    rows = [FoundNode(id=3, name="AddmmBackward0", module=name, outputs=("f32[64, 3072]",)) for name in names]
    return list(FoundPage(width=width).lines(rows, "bytes>0", is_full=True))


def _leaves_found(names: Sequence[str], width: int) -> list[Text]:
    rows = [FoundNode(id=3, name="AccumulateGrad", leaf=name, outputs=("f32[64, 3072]",), line="a.py:7", module=MODULE)
            for name in names]  # fmt: skip
    return list(FoundPage(width=width).lines(rows, "bytes>0", is_full=True))


def _gradients(names: Sequence[str], width: int) -> list[Text]:
    rows = [ParameterRow(node=1, name=name, stats=None, weight_norm=1.0, num_added=1) for name in names]
    return list(GradientsPage(width=width).parameters(unfolded_parameters(rows), None, "model"))


def _flops(names: Sequence[str], width: int) -> list[Text]:
    rows = [FlopRow(label=name, line="model.py:7", forward=2, backward=4, nodes=(1,)) for name in names]
    return list(FlopsPage(width=width).table(CountedFlops(rows=tuple(rows), unknown={}), rows, None))


def _held(names: Sequence[str], width: int) -> list[Text]:
    rows = [MemoryRow(label=name, detail="f32[64, 3072]", num_bytes=4096) for name in names]
    return list(MemoryPage(width=width).table("storage", rows, None, 4096 * len(rows)))


def _alive(names: Sequence[str], width: int) -> list[Text]:
    alive = tuple(
        AliveRow(kind="parameter", name=name, num_bytes=512, num_storages=1, made=Origin(step=0, phase="setup"))
        for name in names
    )
    memory = replace(step_record(), alive=alive, peak_bytes=512 * len(names))
    return list(StepMemoryPage(width=width).lines(memory, None, "storage", replace(ALL_ROWS, top=len(names))))


def _leaves_in_tree(names: Sequence[str], width: int) -> list[Text]:
    """The rows of leaves, without the arguments that they are."""
    lines = _tree(width, op("StackBackward0", *range(1, len(names) + 1)), *(leaf(name, 3) for name in names))
    return [Text(line.plain.partition("◆")[2]) for line in lines if "◆ " in line.plain and "leaf" not in line.plain]


def _modules_in_tree(names: Sequence[str], width: int) -> list[Text]:
    """The rows of nodes, without their numbers."""
    calls = tuple(ModuleCall(path=name, class_name="Linear") for name in _spelled(names))
    nodes = (op("AddmmBackward0", place + 1, module=place) for place in range(len(names)))
    lines = _tree(width, *nodes, leaf("x", 3), modules=calls)
    return [Text(re.sub(r"#\d+", "", line.plain)) for line in lines if "Addmm" in line.plain]


def _tree(width: int, *nodes: Node, modules: tuple[ModuleCall, ...] = ()) -> list[Text]:
    return list(render_tree(graph(*nodes, modules=modules), TreeOptions(width=width, full=True)))


def _moves(names: Sequence[str], width: int) -> list[Text]:
    row = ParameterRow(node=1, name="", stats=gradient_stats(1.0), weight_norm=1.0, num_added=1)
    steps = [GradientStep(captured_at="train.py:7", number=number, loss=None, findings=(), parameters=())
             for number in (1, 2)]  # fmt: skip
    moves = [Move(name=name, rows=(row, row)) for name in names]
    return list(StepsPage(width=width).moves(steps, list(unfolded_moves(moves)), None, "model"))


def _calls(names: Sequence[str], width: int) -> list[Text]:
    rows = [
        FlowRow(path=name, class_name="Linear", call=1, depth=0, node=0, stats=gradient_stats(1.0)) for name in names
    ]
    return list(GradientsPage(width=width).flow(unfolded_flow(rows), is_part=True))


def _stepped(names: Sequence[str], width: int) -> list[Text]:
    """The screen of each leaf's step as one row: a name may go on in the next line."""
    page, rows = StepPage(width=width), list[Text]()
    for name in names:
        stepped = graph(op("AddBackward0", 1), leaf(name, 3))
        rows.append(_one_row(page.step(stepped, Step(order=2, node=1, incoming=(), check="leaf")), width))
    return rows


def _stepped_to(names: Sequence[str], width: int) -> list[Text]:
    """The screen of a node for each leaf that its gradient goes to."""
    page, rows = StepPage(width=width), list[Text]()
    for name in names:
        stepped = graph(op("AddBackward0", 1, module=0), leaf(name, 3),
                        modules=(ModuleCall(path=MODULE, class_name="Linear"),))  # fmt: skip
        rows.append(_one_row(page.step(stepped, Step(order=1, node=0, incoming=(), outgoing=(Passed(),))), width))
    return rows


def _path_stepped(names: Sequence[str], width: int) -> list[Text]:
    """The path to a leaf, for each one."""
    page = StepPage(width=width)
    return [_one_row(page.path(graph(op("AddBackward0", 1), leaf(name, 3)), (1, 0), 1), width) for name in names]


def _one_row(lines: Iterator[Text], width: int) -> Text:
    shown = [line.plain for line in lines]

    assert max(map(cell_len, shown)) <= width

    return Text(re.sub(r"\s", "", "".join(shown)), no_wrap=True)


def _planned(names: Sequence[str], width: int) -> list[Text]:
    """The rows of plans that each change one module."""
    plain = PlanOutcome(plan=Plan(), peak_bytes=4096, backward_bytes=3072, flops=100)
    plans = [replace(plain, plan=Plan(changes=(Checkpoint(root=0, paths=(name,), class_name="Block", num_alike=1),)),
                     peak_bytes=2048) for name in names]  # fmt: skip
    roots, rows = (NamedPlace(name="net", after="train.py:12", code="net = GPT()", indent=0),), list[Text]()
    for outcome in plans:
        search = FoundPlans(limit=3000, plain=plain, fitting=(outcome,), lowest=outcome, num_runs=2)
        report = PlanReport(
            source="a.py", torch_version="2.13", search=search, roots=roots, notes=(), not_counted=("x",)
        )
        lines = [line.plain for line in PlanPage(width=width).lines(report)]
        start = next(number for number, line in enumerate(lines) if "checkpoint" in line)
        rows.append(Text("".join(map(str.strip, lines[start : lines.index("", start)])), no_wrap=True))
    return rows


def _spelled(names: Sequence[str]) -> list[str]:
    """Take away what would be folded."""
    return [re.sub(r"(?<=\d)(?=\.|$)", "n", name) for name in names]


def _changed(names: Sequence[str], width: int) -> list[Text]:
    rows = tuple(ChangedRow(kind="added", module=name, what="CloneBackward0") for name in _spelled(names))
    return _of_diff(width, rows=rows)


def _leaves_changed(names: Sequence[str], width: int) -> list[Text]:
    changes = (LeafChange(kind="changed", name=name, before="f32[64, 3072]", after="f32[64, 768]")
               for name in _spelled(names))  # fmt: skip
    return _of_diff(width, leaf_changes=tuple(changes))


def _modules_changed(names: Sequence[str], width: int) -> list[Text]:
    changes = (ModuleChange(kind="added", before="", after=name, class_name="TransformerEncoderLayer")
               for name in _spelled(names))  # fmt: skip
    return _of_diff(width, module_changes=tuple(changes))


def _of_diff(width: int, **changes: object) -> list[Text]:
    graph = product_plus_two()
    diff = replace(diff_graphs(graph, graph), **changes)
    lines = DiffPage(width=width).lines(diff, [Side("a.json", ""), Side("b.json", "")], max_rows=None)
    return [line for line in lines if line.plain.strip() not in {"", "+ CloneBackward0"}]


@pytest.mark.parametrize("table", [_stepped, _stepped_to, _path_stepped, _planned])
@given(st.one_of(REAL, LONG), st.integers(60, 140))
@settings(max_examples=examples(15))
def test_screens_of_different_names_differ(
    table: Callable[[Sequence[str], int], list[Text]], names: list[str], width: int
) -> None:
    """However long the names are: what does not fit goes on in the next line."""
    rows = {row.plain for row in table(names, width)}

    assert len(rows) == len(names)


@pytest.mark.parametrize("table", [_changed, _leaves_changed, _modules_changed])
def test_long_names_that_differ_in_the_middle_stay_different(
    table: Callable[[Sequence[str], int], list[Text]],
) -> None:
    """Whatever is cut, they are not alike."""
    names = [f"{'of_a_long_name.' * 5}{middle}{'.of_a_long_name' * 5}" for middle in ("query", "key", "value")]
    lines = [line.plain for line in table(names, 80)]

    assert len(set(lines)) - len(table([], 80)) >= len(names)
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize(
    "table",
    [
        _saved, _attributes, _modules_found, _leaves_found, _gradients, _flops, _held, _alive, _changed,
        _leaves_changed, _modules_changed, _leaves_in_tree, _modules_in_tree, _moves, _calls,
    ],
)  # fmt: skip
@given(st.data(), st.integers(60, 140))
def test_different_names_stay_different(
    table: Callable[[Sequence[str], int], list[Text]], data: st.DataObject, width: int
) -> None:
    """Rows that say the same but for a name are different lines, and none is wider than the terminal."""
    model = data.draw(st.sampled_from(sorted(PARAMETERS)))
    names = data.draw(st.lists(st.sampled_from(PARAMETERS[model]), min_size=1, max_size=24, unique=True))
    lines = [line.plain for line in table(names, width)]
    others = len(table(["a"], width)) - 1

    assert len(set(lines)) >= len(names)
    assert len(lines) - len(set(lines)) <= others
    assert max(map(cell_len, lines)) <= width
