"""CSV of saved attributes and of nodes: one record a row, and no cell that a spreadsheet or a terminal would obey."""

import csv
import io
import re

import pytest
from factories import graph, leaf, op, product_plus_two, saved
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from strategies import examples, graphs

from gradinspect.analyses.memory.saved_rows import SavedRow, saved_rows
from gradinspect.analyses.summary import summarize
from gradinspect.graph import Frame, Graph, ModuleCall, SavedValue, Storage
from gradinspect.renderers.data.csv import render_csv
from gradinspect.renderers.data.graphs.whole_graph import NODES, render_nodes_csv
from gradinspect.renderers.data.summary import SAVED
from gradinspect.renderers.data.table import render_table


def read(text: str) -> list[dict[str, str]]:
    """Read CSV as any program does."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def original(cell: str) -> str:
    """Undo what NOTE [Cells for spreadsheets] describes."""
    escape = re.compile(r"\\(?:\\|[nrt]|x..|u.{4}|U.{8})")
    return escape.sub(lambda match: match[0].encode().decode("unicode_escape"), cell.removeprefix("'"))


def test_saved_rows() -> None:
    """The columns are the fields of a row; what is unknown is empty."""
    assert render_table(SAVED, saved_rows(product_plus_two()), "csv").replace("\r\n", "\n") == snapshot("""\
node,node_name,attribute,kind,value,num_bytes,own_bytes,weight_bytes,shared_with,status,status_detail,origin,origin_name,module,source,module_name,kept_by_eager,shown_origin
0,MulBackward0,_saved_other,tensor,f32[1],4,4,0,,live,,activation,,,,,,
0,MulBackward0,_saved_self,tensor,f32[1],4,4,0,,live,,input,,,,,,
1,AddBackward0,_saved_alpha,int,1,,0,0,,,,,,,,,,
""")


def test_nodes() -> None:
    """A node's outputs, place, own bytes and edges are on one row."""
    record = graph(
        op("SplitBackward0", (1, 2), None, module=0, frame=0, saved=(saved("_saved_self", 2, storage=0),)),
        op("A", 2, saved=(saved("_saved_self", 2, storage=0),), forward_outputs=(None, None)),
        leaf("w", 2),
        storages=(Storage(num_bytes=8),),
        modules=(ModuleCall(path="h.0", class_name="Block"),),
        frames=(Frame(file="model.py", line=3),),
    )

    assert render_nodes_csv(record).replace("\r\n", "\n") == snapshot("""\
id,name,kind,outputs,module,source,held_bytes,next_edges
0,SplitBackward0,generated,"f32[2, 3]",h.0,model.py:3,8,1:2 None
1,A,generated,None; None,,,0,2
2,AccumulateGrad,accumulate_grad,f32[2],,,0,
""")


def attributes(*names: str) -> list[str]:
    """Write saved attributes of these names as CSV, and read the cells."""
    rows = saved_rows(graph(op("A", saved=tuple(SavedValue(name=name, kind="none") for name in names))))
    return [row["attribute"] for row in read(render_table(SAVED, rows, "csv"))]


def test_formulas_and_controls_are_text() -> None:
    """No cell begins a formula in a spreadsheet, and none can steer a terminal; numbers stay numbers."""
    assert attributes("=1+1", "+x", "-x", "@x", "\uff1dx", "'x", "\t=x", "\r=x", "-1", "+1.5e-3") == [
        "'=1+1", "'+x", "'-x", "'@x", "'\uff1dx", "''x", r"\t=x", r"\r=x", "-1", "+1.5e-3",
    ]  # fmt: skip
    assert attributes("a\x1b]52;c;x\x07", "\u202eevil", "C:\\new", "two\r\nlines", "\udcff") == [
        r"a\x1b]52;c;x\x07", r"\u202eevil", r"C:\\new", r"two\r\nlines", r"\udcff",
    ]  # fmt: skip


def test_a_number_below_zero_stays_a_number() -> None:
    """What is a number in the record is written as one."""
    assert render_csv(("mean",), [[-1.5], [float("-inf")], [None]]).splitlines() == ["mean", "-1.5", "-inf", '""']


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_every_text_comes_back(names: list[str]) -> None:
    """Line breaks, quotes, commas, formulas and escapes are data."""
    cells = attributes(*names)

    assert names == list(map(original, cells))
    assert all(cell.isprintable() for cell in cells)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(graphs())
def test_every_graph_reads_back(record: Graph) -> None:
    """One record a row with all columns, the names unchanged, and the bytes add up to the summary's."""
    rows = saved_rows(record)
    saved_records = read(render_table(SAVED, rows, "csv"))
    nodes = read(render_nodes_csv(record))

    assert [row.attribute for row in rows] == [original(row["attribute"]) for row in saved_records]
    assert [node.name for node in record.nodes] == [original(row["name"]) for row in nodes]
    assert all(tuple(row) == SavedRow.__struct_fields__ for row in saved_records)
    assert all(list(row) == list(NODES.columns) for row in nodes)
    assert summarize(record).held_bytes == sum(int(row["held_bytes"]) for row in nodes)
