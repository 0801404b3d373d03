"""The gradient screens."""

import json

import msgspec
import pytest
from factories import gradient_stats as stats
from factories import graph, leaf, op
from hypothesis import example, given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from gradinspect.analyses.gradients.folded import FoldedRow, folded_flow, unfolded_parameters
from gradinspect.analyses.gradients.observed import (
    Fall,
    FlowRow,
    GradientNote,
    ParameterRow,
    nodes_by_order,
    parameter_rows,
)
from gradinspect.graph import Gradients, Graph, NodeGradients
from gradinspect.renderers.data.gradients import GRADIENTS, gradient_rows, render_gradients_json
from gradinspect.renderers.data.table import render_table
from gradinspect.renderers.terminal.gradients.call import GradientsPage

NAN = float("nan")


def found() -> Graph:
    """One product; its leaf got something that is not a number."""
    nodes = (
        NodeGradients(node=0, order=0, incoming=(stats(1.0),), outgoing=(stats(NAN, bad=2), None), seconds=0.002),
        NodeGradients(node=1, order=1, incoming=(stats(NAN, bad=2),)),
    )
    gradients = Gradients(nodes=nodes, weight_norms={1: 2.0}, loss=NAN)
    return graph(op("MulBackward0", 1, None), leaf("w", 10), gradients=gradients)


def test_what_was_not_measured_is_not_called_missing() -> None:
    """In the table, in CSV and in JSON, with the reason."""
    why = "inside a torch.func transform"
    nodes = (
        NodeGradients(node=0, order=0, incoming=(stats(1.0),), outgoing=(why, None)),
        NodeGradients(node=1, order=1, incoming=(why,)),
    )
    seen = graph(op("MulBackward0", 1, None), leaf("w", 10), gradients=Gradients(nodes=nodes, notes=("So it is.",)))
    page = GradientsPage(width=72)
    figures = json.loads(render_gradients_json(seen, "here", [], parameter_rows(seen), nodes_by_order(seen)))
    sentences = [f"Gradients at 2 nodes were not measured: {why}.", "So it is."]
    parameters = unfolded_parameters(parameter_rows(seen))

    assert [line.plain.split() for line in page.parameters(parameters, None, "model")][1] == ["w", "unknown"]
    assert [line.plain.split()[-2:] for line in page.nodes(seen, nodes_by_order(seen), None)][1] == [
        "1.0e+00",
        "unknown",
    ]
    assert [line.plain for line in page.unmeasured(sentences)] == sentences
    assert (
        render_table(GRADIENTS, gradient_rows(seen, nodes_by_order(seen)), "csv").splitlines()[2]
        == f"0,0,MulBackward0,,,out,0,,,,,,,,,{why}"
    )
    assert (figures["unmeasured"], figures["nodes"][1]["incoming"]) == (sentences, [why])
    assert (figures["parameters"][0]["stats"], figures["parameters"][0]["unmeasured"]) == (None, why)


def test_flow_and_parameters() -> None:
    """Bars on a logarithmic scale; a leaf without a gradient has none."""
    flow = folded_flow([
        FlowRow(path="", class_name="Net", call=1, depth=0, node=0, stats=stats(1.0)),
        FlowRow(path="act", class_name="ReLU", call=2, depth=1, node=1, stats=stats(0.01, zeros=5)),
    ])  # fmt: skip
    rows = unfolded_parameters([
        ParameterRow(node=3, name="w", stats=stats(1.0), weight_norm=2.0, num_added=2),
        ParameterRow(node=4, name="b", stats=None, weight_norm=1.0, num_added=1),
    ])  # fmt: skip
    page = GradientsPage(width=72)

    assert [line.plain for line in page.flow(flow)] == snapshot(
        [
            "gradient at output of      norm       max     zeros  1e-3    log    1e+0",
            "model  Net              1.0e+00   1.0e+00            ███████████████████",
            "  act (call 2)  ReLU    1.0e-02   1.0e-02       50%  ██████▍",
        ]
    )
    assert [line.plain for line in page.parameters(rows, 1, "model")] == snapshot(
        [
            "gradient of                norm       max   /weight  1e-1    log    1e+0",
            "w (sum of 2)            1.0e+00   1.0e+00   5.0e-01  ███████████████████",
            "1 more leaf: --full",
        ]
    )
    assert [line.plain for line in GradientsPage(width=72, unicode=False).parameters(rows, None, "model")][
        1:
    ] == snapshot(
        ["w (sum of 2)            1.0e+00   1.0e+00   5.0e-01  ###################", "b                          none"]
    )


@pytest.mark.parametrize(
    ("norms", "expected"),
    [
        ((1.0, 1e-4), "The gradient falls 10,000-fold from head (1.0e+00) to stem (1.0e-04)."),
        ((1.0, 2e-9), "The gradient falls by a factor of 5.0e+08 from head (1.0e+00) to stem (2.0e-09)."),
        ((1.0, 3.0), "The gradient rises 3.0-fold from head (1.0e+00) to stem (3.0e+00)."),
        ((1.0, 1.2), "The gradient keeps its size from head (1.0e+00) to stem (1.2e+00)."),
    ],
)
def test_the_fall_in_words(norms: tuple[float, float], expected: str) -> None:
    """From the module closest to the loss to the one farthest from it."""
    closest, farthest = (
        FlowRow(path=path, class_name="Linear", call=1, depth=0, node=0, stats=stats(norm))
        for path, norm in zip(("head", "stem"), norms, strict=True)
    )
    fall = Fall(closest=closest, farthest=farthest, factor=norms[0] / norms[1])

    assert expected == "".join(line.plain for line in GradientsPage(width=100).fall(fall, "model"))


def test_nodes_in_the_order_of_backward() -> None:
    """What came in, what went out, how long it took."""
    assert [line.plain for line in GradientsPage(width=72).nodes(found(), nodes_by_order(found()), None)] == snapshot(
        [
            "node                    norm in       out     zeros        ms",
            "#0 MulBackward0         1.0e+00       nan     2 bad      2.00",
            "#1 AccumulateGrad w         nan",
        ]
    )


def test_notes_name_the_parameters() -> None:
    """A few names, then a count."""
    finding = GradientNote(kind="killed", text="#3 Round returned only zeros.", parameters=("2.bias", *"bcdef"))

    assert [line.plain for line in GradientsPage(width=72).notes([finding], "net")] == [
        "killed: #3 Round returned only zeros.",
        "  no gradient reaches: net.2.bias, b, c, d and 2 more",
    ]


def test_machines_get_every_number() -> None:
    """What is not finite is text in JSON, which has no number for it."""
    figures = json.loads(render_gradients_json(found(), "here", [], parameter_rows(found()), nodes_by_order(found())))

    assert (figures["loss"], figures["parameters"][0]["ratio"]) == ("nan", "nan")
    assert figures["nodes"][0]["outgoing"][1] is None
    assert (
        render_table(GRADIENTS, gradient_rows(found(), nodes_by_order(found())), "csv").splitlines()[1]
        == "0,0,MulBackward0,,,in,0,10,float32,1.0,1.0,0.0,0,0,10,"
    )


@given(st.integers(30, 160), st.booleans(), st.text(max_size=60), st.floats(), st.integers(0, 2**40))
@example(60, True, "1\ufe0f", 1.0, 0)
@example(60, True, "a", 1.0, 2**40)
def test_no_line_is_wider_than_asked(width: int, unicode: bool, name: str, norm: float, bad: int) -> None:
    """Whatever the program calls its parameters, whatever the numbers are."""
    page = GradientsPage(width=width, unicode=unicode)
    figures = msgspec.structs.replace(stats(abs(norm)), num_nonfinite=bad)
    row = ParameterRow(node=0, name=name, stats=figures, weight_norm=1.0, num_added=3, update_norm=norm)
    parameters = page.parameters(unfolded_parameters([row]), None, "model")
    lines = [page.title(name), *parameters, *page.nodes(found(), nodes_by_order(found()), None)]

    assert all(line.cell_len <= width and line.plain.isprintable() for line in lines)


@pytest.mark.parametrize("norm", [0.0, NAN, float("inf"), 1e-300])
def test_strange_norms_have_a_bar(norm: float) -> None:
    """Or none, and no error."""
    row = FlowRow(path="a", class_name="A", call=1, depth=0, node=0, stats=stats(norm))

    assert len(list(GradientsPage().flow(folded_flow([row, row, row])))) == 3
    assert len(list(GradientsPage().flow(folded_flow([row, row])))) == 3


def test_equal_blocks_are_one_row() -> None:
    """With the ranges of their figures and how many gradients were added up, and the odd one out."""
    rows = [
        ParameterRow(node=1, name=f"model.layers.{place}.mlp.weight", stats=stats(norm), weight_norm=2.0, num_added=2)
        for place, norm in enumerate((1.0, 1.2, 4.0, 1.1))
    ]
    single = ParameterRow(node=2, name="head.bias", stats=None, weight_norm=1.0, num_added=1)
    folded = [FoldedRow(name="model.layers.0-3.mlp.weight", rows=tuple(rows)), FoldedRow(name="b", rows=(single,))]

    assert [line.plain for line in GradientsPage(width=76).parameters(folded, None, "model")] == snapshot(
        [
            "gradient of                                        norm  1e-1    log    1e+1",
            "model.layers.0-3.mlp.weight (sum of 2) ×4  1.0..4.0e+00  █████████▌░░░░░",
            "  model.layers.2.mlp.weight: 3.6 times the others",
            "b                                                  none",
            "Each one: --full",
            "not shown at this width: max, /weight",
        ]
    )


def blocks(*norms: float) -> list[FlowRow]:
    """A model of equal blocks of one layer each, from the last to the first, before a layer."""
    inside = [("", "Net", 0, 1.0), ("head", "Linear", 1, 1.0)]
    for place, norm in reversed(list(enumerate(norms))):
        inside += [(f"h.{place}", "Block", 1, norm), (f"h.{place}.fc", "Linear", 2, 2 * norm)]
    return [FlowRow(path=path, class_name=name, call=1, depth=depth, node=0, stats=stats(norm))
            for path, name, depth, norm in inside]  # fmt: skip


def test_calls_of_equal_blocks_are_one_row() -> None:
    """With the least and the greatest, a bar from one to the other, and the odd one out; steps of a loop, too."""
    page = GradientsPage(width=72)
    cells = [FlowRow(path="cell", class_name="RNNCell", call=step, depth=0, node=0, stats=stats(1.0))
             for step in range(1, 6)]  # fmt: skip

    assert [line.plain for line in page.flow(folded_flow(blocks(0.1, 0.12, 0.1, 0.5, 0.1)))] == snapshot(
        [
            "gradient at output of          norm           max  1e-2     log     1e+0",
            "model  Net                  1.0e+00       1.0e+00  █████████████████████",
            "  head  Linear              1.0e+00       1.0e+00  █████████████████████",
            "  h.0-4  Block ×5      1.0..5.0e-01  1.0..5.0e-01  ██████████▌░░░░░░░",
            "    h.3: 5.0 times the others",
            "    fc  Linear ×5      2e-01..1e+00  2e-01..1e+00  █████████████▋░░░░░░░",
            "Each one: --full",
        ]
    )
    assert [line.plain for line in page.flow(folded_flow(cells))][1:] == snapshot(
        ["cell (calls 1-5)  RNNCell ×5   1.0e+00   1.0e+00  ██████████████████████", "Each one: --full"]
    )


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("h.{}.seq.conv", "    conv"),
        ("h.{}.conv", "    conv"),  # which the block keeps beside the Sequential that calls it
        ("conv", "    conv"),
        ("h.0.conv", "    h.0.conv"),  # one for all blocks
    ],
)
def test_a_module_is_named_from_what_it_and_its_caller_are_in(inside: str, expected: str) -> None:
    """If each caller has its own."""
    rows = [
        FlowRow(path=path.format(place), class_name=name, call=place + 1, depth=depth, node=0, stats=stats(1.0))
        for place in range(3)
        for path, name, depth in (("h.{}", "Block", 0), ("h.{}.seq", "Sequential", 1), (inside, "Conv1d", 2))
    ]
    lines = [line.plain for line in GradientsPage(width=72).flow(folded_flow(rows))]
    named = next(line.partition("  Conv1d")[0] for line in lines if "Conv1d" in line)

    assert named.partition(" (")[0] == expected


@pytest.mark.parametrize("norms", [(1e-6, 1e-4, 1e-2, 1.0), (1e-3, 1.0)])
def test_blocks_through_which_a_gradient_vanishes_have_a_row_each(norms: tuple[float, ...]) -> None:
    """A range would not say how it falls."""
    lines = [line.plain for line in GradientsPage(width=72).flow(folded_flow(blocks(*norms)))]

    assert len(lines) == 3 + 2 * len(norms)


def test_columns_give_way_before_names_are_cut() -> None:
    """The greatest element first; what is not shown is named, unless it would be empty."""
    name = "a.name.of.a.parameter.that.takes.all.the.room"
    rows = [ParameterRow(node=1, name=name, stats=stats(0.5), weight_norm=2.0, num_added=1)]

    assert [
        line.plain for line in GradientsPage(width=72).parameters(unfolded_parameters(rows), None, "model")
    ] == snapshot(
        [
            "gradient of                                        norm   /weight",
            "a.name.of.a.parameter.that.takes.all.the.room   5.0e-01   2.5e-01",
            "not shown at this width: max",
        ]
    )
    assert [
        line.plain for line in GradientsPage(width=60).parameters(unfolded_parameters(rows), None, "model")
    ] == snapshot(
        [
            "gradient of                                        norm",
            "a.name.of.a.parameter.that.takes.all.the.room   5.0e-01",
            "not shown at this width: max, /weight",
        ]
    )
