"""Names of real models in the tables of all verbs: no two different ones are written alike."""

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_names import PARAMETERS
from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text
from step_record import step_record

from gradinspect.analyses.gradients.observed import ParameterRow
from gradinspect.analyses.memory.flops import CountedFlops, FlopRow
from gradinspect.analyses.memory.rows import MemoryRow
from gradinspect.analyses.memory.saved_rows import SavedRow
from gradinspect.analyses.memory.step import AliveRow, Origin
from gradinspect.analyses.selection.finding import FoundNode
from gradinspect.analyses.selection.rows import ALL_ROWS
from gradinspect.renderers.terminal.found import FoundPage
from gradinspect.renderers.terminal.gradients.call import GradientsPage
from gradinspect.renderers.terminal.memory.flops import FlopsPage
from gradinspect.renderers.terminal.memory.held import MemoryPage
from gradinspect.renderers.terminal.memory.step import StepMemoryPage
from gradinspect.renderers.terminal.saved_table import render_folded_table, render_saved_table

MODULE = "encoder.layers.0.self_attn"
SAVED = SavedRow(node=7, node_name="AddmmBackward0", attribute="_saved_x", kind="tensor", value="f32[768, 3072]",
                 num_bytes=4096, own_bytes=4096, status="live")  # fmt: skip


def _saved(names: Sequence[str], width: int) -> list[Text]:
    spelled = [re.sub(r"\b\d", r"n\g<0>", name) for name in names]  # not an index: nothing is folded
    rows = [replace(SAVED, module=name, module_name=name) for name in spelled]
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
    return list(GradientsPage(width=width).parameters(rows, None))


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


@pytest.mark.parametrize(
    "table", [_saved, _attributes, _modules_found, _leaves_found, _gradients, _flops, _held, _alive]
)
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
