"""The screen of several backward calls."""

import json

import pytest
from factories import gradient_stats as stats
from factories import graph, op
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace

from gradinspect.analyses.gradients.observed import ParameterRow
from gradinspect.analyses.gradients.steps import GradientStep, GradientSteps, Move, moves
from gradinspect.graph import Gradients
from gradinspect.renderers.data.gradients import STEPS, render_steps_json, step_rows
from gradinspect.renderers.data.table import render_table
from gradinspect.renderers.terminal.gradients.several_calls import StepsPage

NAN = float("nan")


def row(norm: float | None, update: float | None = None, name: str = "w") -> ParameterRow:
    """Make one parameter of one call."""
    found = None if norm is None else stats(norm)
    return ParameterRow(node=3, name=name, stats=found, weight_norm=2.0, num_added=1, update_norm=update)


def steps_of(*norms: float | None, update: float | None = None) -> GradientSteps:
    """Make calls of a program with one parameter."""
    steps = tuple(
        GradientStep(
            number=number + 1,
            captured_at=f"backward #{number + 1}  a.py:7",
            loss=1 / (number + 1),
            findings=(),
            parameters=(row(norm, update),),
        )
        for number, norm in enumerate(norms)
    )  # fmt: skip
    return GradientSteps(asked=4, graph=graph(op("A"), gradients=Gradients(nodes=())), steps=steps)


def lines(found: GradientSteps, **options: object) -> list[str]:
    """Write head and table."""
    page = StepsPage(width=72, **options)  # type: ignore[arg-type]
    rows = [Move(name="w", rows=tuple(step.parameters[0] for step in found.steps))]
    return [line.plain for line in [*page.head(found), *page.tables(found.steps, rows, None, model="model")]]


def test_a_column_for_each_call() -> None:
    """While there is room; the update is the last one's."""
    assert lines(steps_of(1.0, None, 0.0, update=0.02)) == snapshot(
        [
            "backward #1  a.py:7 ... #3",
            "3 backward calls observed, 4 requested: the program made no more, loss 1",
            "  to 0.3333",
            "gradient norm of             #1        #2        #3  update/weight",
            "w                       1.0e+00      none         0        1.0e-02",
        ]
    )


def test_calls_on_different_lines_have_a_table_each() -> None:
    """With their own losses; a parameter is where a graph has it."""
    found = steps_of(1.0, 2.0, 3.0, 4.0)
    second = [
        replace(
            step, captured_at=f"backward #{step.number}  a.py:9", parameters=(row(0.5, name="v"),), loss=step.number
        )
        for step in found.steps[1::2]
    ]
    steps = (found.steps[0], second[0], found.steps[2], second[1])
    page = StepsPage(width=72)

    assert [line.plain for line in page.tables(steps, moves(steps), None, model="model")] == snapshot(
        [
            "a.py:7",
            "#1, #3, loss 1 to 0.3333",
            "gradient norm of             #1        #3",
            "w                       1.0e+00   3.0e+00",
            "",
            "a.py:9",
            "#2, #4, loss 2 to 4 (it rises)",
            "gradient norm of             #2        #4",
            "v                       5.0e-01   5.0e-01",
        ]
    )
    assert [line.plain for line in page.head(replace(found, steps=steps))][-1] == "4 backward calls observed"


def blocks_of(*norms: dict[str, float | None]) -> tuple[GradientStep, ...]:
    """Make calls with a parameter for each name."""
    return tuple(
        GradientStep(
            number=number,
            captured_at=f"backward #{number}  a.py:7",
            loss=None,
            findings=(),
            parameters=tuple(row(norm, name=name) for name, norm in call.items()),
        )
        for number, call in enumerate(norms, 1)
    )


def folded_lines(steps: tuple[GradientStep, ...], **options: bool) -> list[str]:
    """Write the table, with equal blocks in one row."""
    page = StepsPage(width=72, **options)
    return [line.plain for line in page.tables(steps, moves(steps), None, folds=True, model="model")]


def test_equal_blocks_share_a_row() -> None:
    """With the range of their norms in each call, and the one that is odd in the last."""
    first = {f"h.{block}.w": 1.0 + block / 10 for block in range(6)}
    steps = blocks_of({"head.w": 0.5, **first}, {"head.w": 0.4, **first, "h.2.w": 9.0})

    assert folded_lines(steps) == snapshot(
        [
            "gradient norm of                 #1            #2",
            "head.w                      5.0e-01       4.0e-01",
            "h.0-5.w ×6             1.0..1.5e+00  1.0..9.0e+00",
            "  h.2.w: 6.9 times the others",
            "Each one: --full",
        ]
    )


def test_blocks_without_a_gradient_in_one_of_the_calls_have_a_row_of_their_own() -> None:
    """None is in no range."""
    names = [f"h.{block}.w" for block in range(6)]
    steps = blocks_of(dict.fromkeys(names, 1.0), {name: None if name < "h.3" else 1.0 for name in names})

    assert folded_lines(steps) == snapshot(
        [
            "gradient norm of             #1        #2",
            "h.0-2.w ×3              1.0e+00      none",
            "h.3-5.w ×3              1.0e+00   1.0e+00",
            "Each one: --full",
        ]
    )


def test_the_line_of_equal_blocks_is_that_of_their_median() -> None:
    """Where a column for each call has no room."""
    calls: list[dict[str, float | None]] = [
        {f"h.{block}.w": 10.0 ** (call + block) for block in range(3)} for call in range(9)
    ]
    steps = blocks_of(*calls)
    one = StepsPage().line([call["h.1.w"] for call in calls])

    assert folded_lines(steps)[1].endswith(one)


def test_a_line_of_bars_where_there_is_no_room() -> None:
    """First, last, and the way between; ASCII where there is no more."""
    norms = (1.0, 0.1, 0.01, 0.0, None, NAN, 10.0, 1e-3)

    assert lines(steps_of(*norms))[-2:] == snapshot(
        ["gradient norm of             #1        #8     #1..8", "w                       1.0e+00   1.0e-03  ▇▅▃0 !█▁"]
    )
    assert lines(steps_of(*norms), unicode=False)[-1].endswith("  *=-0 !#_")


def test_the_middle_of_few_calls_gives_way_before_names_are_cut() -> None:
    """They say little that the first and the last call do not; those of many calls stay."""
    names = [f"transformer.h.{block}.attention.weight" for block in range(6)]
    calls: list[dict[str, float | None]] = [
        {name: 1.0 + block / 10 for block, name in enumerate(names)} for _ in range(6)
    ]

    assert folded_lines(blocks_of(*calls[:4]))[1].startswith("transformer.h.0-5.attention.weight ×6 ")
    assert folded_lines(blocks_of(*calls[:4]))[-1] == "not shown at this width: #2, #3"
    assert folded_lines(blocks_of(*calls))[0].endswith("#6     #1..6")


@pytest.mark.parametrize(("part", "is_whole"), [("attention", True), ("attention_of_the_encoder_and_decoder", False)])
def test_updates_give_way_where_names_are_whole_without_them(part: str, is_whole: bool) -> None:
    """Else a name that is cut at its start leaves room for both."""
    names = [f"transformer.layers.h.{block}.{part}.weight" for block in range(6)]
    call: dict[str, float | None] = dict.fromkeys(names, 1.0)
    steps = tuple(
        replace(step, parameters=tuple(replace(one, update_norm=0.02) for one in step.parameters))
        for step in blocks_of(call, call)
    )
    found = folded_lines(steps)

    assert is_whole == found[1].startswith(f"transformer.layers.h.0-5.{part}.weight ×6 ")
    assert is_whole == (found[-1] == "not shown at this width: update/weight")


def test_many_calls_are_sampled() -> None:
    """The line has a limit; its ends are the first and the last call."""
    line = StepsPage().line([10.0 ** -(number / 10) for number in range(200)])

    assert len(line) == 24
    assert (line[0], line[-1]) == ("█", "▁")


def test_a_row_that_hardly_moves_is_flat() -> None:
    """A factor of ten is the least range."""
    assert len(set(StepsPage().line([1.0, 1.01, 0.99]))) == 1


def test_machines_get_every_call() -> None:
    """One line a parameter and call; the same in JSON."""
    found = steps_of(1.0, None, update=0.02)
    figures = json.loads(render_steps_json(found))

    assert render_table(STEPS, step_rows(found), "csv").splitlines()[1:] == [
        "1,w,3,10,float32,1.0,1.0,0.0,0,0,10,2.0,0.5,0.02,0.01,", "2,w,3,,,,,,,,,2.0,,0.02,0.01,",
    ]  # fmt: skip
    assert [step["parameters"][0]["update_ratio"] for step in figures["steps"]] == [0.01, 0.01]
    assert figures["asked"] == 4


@given(
    st.integers(60, 160),
    st.booleans(),
    st.text(max_size=60),
    st.lists(st.none() | st.just(NAN) | st.floats(min_value=0), min_size=1, max_size=40),
)
def test_no_line_is_wider_than_asked(width: int, unicode: bool, name: str, norms: list[float | None]) -> None:
    """Whatever the norms are."""
    found = steps_of(*norms, update=1.0)
    page = StepsPage(width=width, unicode=unicode)
    move = Move(name=name, rows=tuple(row(norm, 1.0, name) for norm in norms))

    for line in [*page.head(found), *page.tables(found.steps, [move], None, model="model")]:
        assert line.cell_len <= width
        assert unicode or line.plain.isascii()


@pytest.mark.parametrize("norms", [(NAN,), (0.0, 0.0), (None,), (1e-320, 1e308)])
def test_strange_norms_have_a_line(norms: tuple[float | None, ...]) -> None:
    """And no error."""
    assert len(StepsPage().line(norms)) == len(norms)


def test_the_update_gives_way_before_names_are_cut_within() -> None:
    """A name that is cut at its start is still one; the last line says what is not there."""
    both = (row(1.0, 0.02), row(2.0, 0.02))
    steps = [step for step in steps_of(1.0, 2.0, update=0.02).steps for _ in range(4)]

    def printed(*names: str) -> list[str]:
        rows = [Move(name=name, rows=both * 4) for name in names]
        return [line.plain for line in StepsPage(width=80).tables(steps, rows, None, model="model")]

    alike = printed("encoder.layers.0.self_attention.weight", "decoder.layers.0.self_attention.weight")
    one = printed("encoder.decoder.embedding.self_attention.query.weight")

    assert alike[1].startswith("encoder.layers.0.self_attention.weight ")
    assert alike[-1] == "not shown at this width: update/weight"
    assert one[1].startswith("…self_attention.query.weight ")
    assert "update/weight" in one[0]
