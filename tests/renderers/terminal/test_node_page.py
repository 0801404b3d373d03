"""What the panel says of a node and of a part of the graph."""

from collections.abc import Iterable

import msgspec
from factories import gradient_stats, graph, leaf, op, product_plus_two, residual_blocks, saved, two_layers, walk_scopes
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.cells import cell_len
from strategies import examples, graphs

from gradinspect.analyses.explain.explanation import Explanation, InputGradient
from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.graph import Frame, Gradients, Graph, Hook, NodeGradients, Root, Storage
from gradinspect.renderers.terminal.nodes.node_page import NodePage
from gradinspect.renderers.terminal.nodes.panel_page import Facts, PageLine
from gradinspect.renderers.terminal.nodes.scope_page import ScopePage

SOURCE = ["import torch", "", "x = torch.ones(1)", "y = x + 2", "loss = x * y", "loss.backward()"]
HOSTILE = "[red]x[/]\x1b[31m\n\u202e"


def explain(name: str) -> Explanation | None:
    """Know one class."""
    gradients = (InputGradient(argument="self", place="0", formula="grad * other"),)
    is_known = name == "MulBackward0"
    return Explanation(name=name, signature="mul(Tensor self, Tensor other)", gradients=gradients) if is_known else None


def page(drawn: Graph, width: int = 60) -> NodePage:
    """Make what writes."""
    return NodePage(Facts(drawn, explain, {"train.py": SOURCE}.get), width=width)


def scopes(drawn: Graph, width: int = 60) -> ScopePage:
    """Make what writes of scopes."""
    return ScopePage(page(drawn).facts, width=width)


def screen(lines: Iterable[PageLine]) -> str:
    """Print lines, each with the node it leads to."""
    shown = (f"{line.text.plain:<50}{'' if line.target is None else f'  -> {line.target}'}" for line in lines)
    return "\n" + "\n".join(line.rstrip() for line in shown) + "\n"


def test_a_node() -> None:
    """Outputs, edges by argument name, what it saves, formula, the line with those around it, hooks, gradients."""
    drawn = msgspec.structs.replace(product_plus_two(), frames=(Frame(file="train.py", line=5, function="main"),))
    node = msgspec.structs.replace(drawn.nodes[0], frame=0, hooks=(Hook(kind="pre", name="clip"),))
    ran = NodeGradients(node=0, order=0, incoming=(gradient_stats(1.0),), outgoing=(gradient_stats(3.0), None))
    drawn = msgspec.structs.replace(
        drawn, nodes=(node, *drawn.nodes[1:]), gradients=Gradients(nodes=(ran,)), roots=(Root(node=0, name="loss"),)
    )

    assert screen(page(drawn).node(0)) == snapshot("""\

#0 MulBackward0  f32[1]
root loss
gradient  norm 1.0e+00, largest 1.0e+00

gradients go to
  self → ◆ a  f32[1]  norm 3.0e+00                  -> 2
  other → #1 AddBackward0  f32[1]                   -> 1

saved for backward
  _saved_other  f32[1]  4 B  activation
  _saved_self  f32[1]  4 B  input

formula
  mul(Tensor self, Tensor other)
  self: grad * other

source
  train.py:5 in main
     2
     3  x = torch.ones(1)
     4  y = x + 2
>    5  loss = x * y
     6  loss.backward()

hooks
  pre: clip
""")


def test_a_leaf() -> None:
    """Its tensor, its names, and who uses it."""
    assert screen(page(product_plus_two()).node(2)) == snapshot("""\

#2 AccumulateGrad
◆ a
f32[1]  variable

gradients come from
  #0 MulBackward0  f32[1]  for self                 -> 0
  #1 AddBackward0  f32[1]  for self                 -> 1
""")


def test_a_module_call() -> None:
    """How large it is, its classes, parameters and nodes."""
    drawn = two_layers()
    call = next(scope for scope in walk_scopes(fold_graph(drawn)) if scope.module == 1)

    assert screen(scopes(drawn).scope(call, None)) == snapshot("""\

2  Linear
nodes     2, #1 to #2
held      320 B

classes
  1 AddmmBackward0
  1 TBackward0

leaves
  ◆ model.2.bias  f32[3]                            -> 6
  ◆ model.2.weight  f32[3, 20]                      -> 7

gradients go to
  #3 ReluBackward0  f32[4, 20]                      -> 3

gradients come from
  #0 NllLossBackward0  f32[]                        -> 0

nodes
  #1 AddmmBackward0  f32[4, 3]                      -> 1
  #2 TBackward0  f32[20, 3]                         -> 2
""")


def test_one_copy_of_a_repeat() -> None:
    """The nodes are those of the copy that the tree tells."""
    drawn = residual_blocks(4)
    repeat = next(scope for scope in walk_scopes(fold_graph(drawn)) if scope.copies)
    lines = list(scopes(drawn).scope(repeat, 2))
    plain = [line.text.plain for line in lines[:2]]

    assert plain == ["repeated block ×4, this is copy 3", "h.1  Block"]
    assert [line.target for line in lines[-3:]] == [6, 7, 8]


def test_without_a_file_the_recorded_line_is_shown() -> None:
    """A capture may be looked at where its program is not."""
    drawn = graph(op("MulBackward0", None, frame=0), frames=(Frame(file="far/away.py", line=2, code="y = x * 2"),))
    lines = [line.text.plain.strip() for line in page(drawn).node(0)]

    assert lines[-2:] == ["far/away.py:2", "y = x * 2"]


def test_the_line_number_stays_where_there_is_little_room() -> None:
    """First the folders go, then the function."""
    frame = Frame(file="package/folder/file.py", line=120, function="Model.forward")
    drawn = graph(op("MulBackward0", None, frame=0), frames=(frame,))
    lines = [list(page(drawn, width).node(0))[-1].text.plain.strip() for width in (60, 40, 20)]

    assert lines == ["package/folder/file.py:120 in Model.forward", "file.py:120 in Model.forward", "file.py:120"]


def test_nothing_of_the_program_reaches_the_terminal_as_it_is() -> None:
    """Control characters are written out; what looks like markup is text."""
    drawn = graph(
        op(HOSTILE, 1, function=HOSTILE, hooks=(Hook(kind="pre", name=HOSTILE),),
           saved=(saved(HOSTILE, 2, storage=0),)),
        leaf(HOSTILE, 2), storages=(Storage(num_bytes=8),), arguments={HOSTILE: (HOSTILE,)}, warnings=(HOSTILE,),
    )  # fmt: skip
    writer = page(drawn)
    text = "".join(line.text.plain for lines in (writer.node(0), writer.node(1), writer.warnings()) for line in lines)

    assert text.isprintable()
    assert text.count("[red]x[/]") >= 6


@settings(max_examples=examples(40), deadline=None)
@given(graphs(), st.integers(20, 100))
def test_every_page_fits_and_leads_somewhere(drawn: Graph, width: int) -> None:
    """Whatever the graph is."""
    writer = page(drawn, width)
    lines = [line for node_id in range(len(drawn.nodes)) for line in writer.node(node_id)]
    lines += [
        line
        for scope in walk_scopes(fold_graph(drawn))
        if scope.items
        for line in scopes(drawn, width).scope(scope, None)
    ]

    assert all(cell_len(line.text.plain) <= width for line in lines)
    assert all(line.target is None or line.target < len(drawn.nodes) for line in lines)
