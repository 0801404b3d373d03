"""A compiled step beside the same step in eager, on a terminal."""

from msgspec.structs import replace

from gradinspect.analyses.diff.compiled import (
    ComparedCall,
    CompiledDiff,
    CompiledValueDiff,
    OneSided,
    OperatorValue,
    StepValue,
)
from gradinspect.graph import Frame
from gradinspect.renderers.terminal.compiled_diff import CompiledDiffPage
from gradinspect.request import CompiledRegion

OPERATOR = OperatorValue(
    direction="backward", operator="aten.mul", forward="gelu", module="h.3.mlp", frame=Frame("model.py", 31), error=0.5,
    rounding=1e-7, number=2,
)  # fmt: skip


def difference(name: str, error: float) -> CompiledValueDiff:
    """Make the gradient of a parameter that is off."""
    value = StepValue(call=0, role="gradient", name=name, dtype="float32", shape=(4, 4), norm=2.0, error=2 * error)
    return CompiledValueDiff(value=value, rounding=3e-7)


def diff(*differences: CompiledValueDiff) -> CompiledDiff:
    """Make a comparison of ten values."""
    return CompiledDiff(
        label="train.py", calls=(ComparedCall("backward #1", Frame("train.py", 20)),), num_eager_calls=1,
        num_compared=10, differences=differences, one_sided=(), incomparable=(), largest=1e-7, largest_rounding=3e-7,
        num_graphs=2, breaks=(), backends=("inductor",),
    )  # fmt: skip


def screen(found: CompiledDiff, width: int = 80) -> str:
    """Write it."""
    lines = [line.plain.rstrip() for line in CompiledDiffPage(width=width).lines(found)]
    assert all(len(line) <= width for line in lines)
    return "\n".join(lines)


def test_what_differs_is_a_table_with_the_operator_that_is_to_blame() -> None:
    """Equal blocks are one row."""
    blocks = [difference(f"h.{number}.mlp.weight", 0.1 + number / 100) for number in range(3)]
    blamed = replace(
        diff(difference("head.weight", 0.4), *blocks), stage="inductor", right=("eager", "aot_eager"),
        operator=OPERATOR, num_replayed=2, breaks=("train.py:7: print",),
    )  # fmt: skip

    assert (
        screen(blamed)
        == """\
train.py  eager beside compiled (inductor)
backward #1 at train.py:20
  graph break  train.py:7: print

                                                               off by   rounding
gradient  head.weight                                         4.0e-01    3.0e-07
gradient  h.0-2.mlp.weight ×3                                 1.2e-01    3.0e-07

It goes wrong in inductor itself. It is right with eager, aot_eager.
First wrong operator: aten.mul in the backward of gelu of h.3.mlp, model.py:31,
  off by 5.0e-01 where rounding makes 1.0e-07.
4 of 10 values differ by more than rounding, 2 compiled graphs."""
    )


def test_no_difference_says_how_far_all_are_off() -> None:
    """And what was not compared."""
    assert (
        screen(replace(diff(), incomparable=("bias: rounding moves it by 50%",)))
        == """\
train.py  eager beside compiled (inductor)
backward #1 at train.py:20

No difference but rounding: 10 values, 2 compiled graphs, at most 1.0e-07 off,
  where rounding makes 3.0e-07.
Not compared: bias: rounding moves it by 50%."""
    )


def test_a_part_of_torch_is_named_by_what_it_does() -> None:
    """Where it is not the backend."""
    found = replace(diff(difference("a", 0.1)), stage="aot_eager", right=("eager",))

    assert "It goes wrong with backend aot_eager: AOTAutograd, which makes the backward" in screen(found)
    assert "\nThe line is not known: operators are compared only where the backend is at" in screen(found)


def test_the_compiled_region_is_named() -> None:
    """Of a part of torch that is wrong, and with an escaped name."""
    region = CompiledRegion("He\x1bad", Frame("train.py", 12))
    found = replace(diff(difference("a", 0.1)), stage="eager", regions=(region,), num_right_regions=1)

    said = " ".join(screen(found).split())
    assert "The wrong region is He\\x1bad, compiled at train.py:12; 1 other, compiled alone, is right." in said
    assert "The line in it is not known: operators are compared" in said


def test_operators_that_were_not_compared_are_said_to_be() -> None:
    """Each reason in a sentence."""
    wrong = replace(diff(difference("a", 0.1)), stage="mine")

    assert "it compiles no graph of AOTAutograd" in screen(wrong)
    assert "No operator of 2 compiled graphs is off" in screen(replace(wrong, num_replayed=2))
    assert "not compared: ValueError in compiled graph 1" in screen(
        replace(wrong, replay_problem="ValueError in compiled graph 1")
    )
    fused = replace(wrong, operator=replace(OPERATOR, is_fused=True))
    shared = replace(wrong, operator=replace(OPERATOR, is_fused=True, num_results=3))
    assert (
        "All 3 wrong results, off by at most 5.0e-01, come from aten.mul in the backward of gelu of h.3.mlp, "
        "model.py:31. It is right if"
    ) in screen(shared).replace("\n  ", " ")
    drawn = replace(wrong, stage="aot_eager", operator=replace(OPERATOR, is_drawn_again=True))
    said = screen(fused).replace("\n  ", " ")
    assert "what the backend makes of several is wrong (fused, in another order, or a write that is lost)." in said
    assert (
        "First drawn again: aten.mul in the backward of gelu of h.3.mlp, model.py:31. Backward gets other random "
        "numbers than forward had."
    ) in screen(drawn).replace("\n  ", " ")
    assert "The line is not known" not in screen(drawn)


def test_what_is_zero_in_eager_has_no_norm_to_compare_with() -> None:
    """So it is off by no part of it."""
    other = difference("a", 0.1)
    found = diff(replace(other, value=replace(other.value, norm=0.0)))

    assert screen(found).splitlines()[4].split() == ["gradient", "a", "0", "in", "eager", "3.0e-07"]


def test_equal_values_that_share_other_memory() -> None:
    """No value differs, so none is counted as different."""
    lost = OneSided("memory", "flat and x", "shared only in eager")
    found = replace(diff(), one_sided=(lost,), num_eager_calls=2)

    assert screen(found).splitlines()[3:] == [
        "backward calls: 2 in eager, 1 compiled.",
        "memory of flat and x: shared only in eager.",
        "Different: the number of backward calls, which tensors share memory. 10 values",
        "  are equal but for rounding, 2 compiled graphs.",
    ]
    one = replace(diff(), one_sided=(OneSided("gradient", "a", "only in eager"),), num_compared=1)
    assert screen(one).splitlines()[-2:] == [
        "Different: which values there are, or their shapes. 1 value is equal but for",
        "  rounding, 2 compiled graphs.",
    ]


def test_control_characters_of_a_program_are_escaped() -> None:
    """In names, reasons and lines."""
    sided = (OneSided("gradient", "d\x07", "only in eager"),)
    found = replace(diff(difference("a\x1b[2J", 0.1)), breaks=("b\x1b[31m",), stage="c\x1b]0;", one_sided=sided)

    assert "\x1b" not in screen(found)
    assert "\x07" not in screen(found)


def test_what_fails_in_eager_alone() -> None:
    """One screen, without a table."""
    found = replace(diff(), eager_failure="The script failed with RuntimeError.", stage="aot_eager", right=("eager",))

    assert screen(found).splitlines()[3:] == [
        "In eager: The script failed with RuntimeError.",
        "Compiled, the program goes on, so nothing could be compared.",
        "It fails with eager too. It goes on with aot_eager: AOTAutograd, which makes the",
        "  backward graph.",
    ]
