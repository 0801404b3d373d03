"""Whether a compiled step computes what eager does."""

import struct

import msgspec

from gradinspect.analyses.diff.compiled import (
    STAGES,
    UNIT_OF,
    UNITS,
    ComparedCall,
    OneSided,
    StepValue,
    StepValues,
    allowed,
    judge,
    stages_before,
)

NOISE = 1e-6


def value(
    name: str, *, error: float = 0.0, norm: float = 1.0, shape: tuple[int, ...] = (8,), **others: object
) -> StepValue:
    """Make the gradient of one parameter."""
    return StepValue(
        call=0, role="gradient", name=name, dtype="float32", shape=shape, norm=norm, error=error,
        **others,  # type: ignore[arg-type]  # its own fields
    )  # fmt: skip


def run(*values: StepValue, calls: int = 1) -> StepValues:
    """Make a run with some values."""
    return StepValues(calls=(ComparedCall("backward #1"),) * calls, values=values, num_graphs=1, backends=("inductor",))


def test_what_rounding_moves_as_far_is_no_difference() -> None:
    """The largest error is told beside that of rounding."""
    found = judge("train.py", [run(value("a", error=NOISE))], run(value("a", error=3 * NOISE)))

    assert found.is_same
    assert (found.num_compared, found.largest, found.largest_rounding) == (1, 3 * NOISE, NOISE)


def test_what_is_off_by_more_than_rounding_differs() -> None:
    """The worst comes first."""
    rounded = run(value("a", error=NOISE), value("b", error=NOISE), value("c", error=NOISE))
    found = judge("train.py", [rounded], run(value("a", error=0.1), value("b", error=0.5), value("c", error=NOISE)))

    assert [one.value.name for one in found.differences] == ["b", "a"]
    assert found.num_compared == 3


def test_a_variable_that_is_not_there_while_it_is_compiled_is_not_missed() -> None:
    """A buffer that is not there is."""
    for role, is_same in (("tensor", True), ("memory", True), ("buffer", False)):
        rounded = run(value("a"), msgspec.structs.replace(value("total"), role=role))

        assert judge("train.py", [rounded], run(value("a"))).is_same == is_same


def test_what_two_eager_runs_have_or_not_is_no_difference() -> None:
    """A tensor may share memory by chance."""
    shared = msgspec.structs.replace(value("flat and x"), role="memory", problem="shared only in eager")
    found = judge("train.py", [run(value("a"), shared)], run(value("a"), shared))

    assert found.is_same
    assert found.incomparable == ("flat and x: two eager runs differ in what they have",)
    assert judge("train.py", [run(value("a"))], run(value("a"), shared)).one_sided == (
        OneSided("memory", "flat and x", "shared only in eager"),
    )


def test_the_largest_of_several_roundings_counts() -> None:
    """One may be right by chance."""
    rounded = [run(value("a", error=0.0)), run(value("a", error=1e-2))]

    assert judge("train.py", rounded, run(value("a", error=2e-2))).is_same
    assert not judge("train.py", rounded[:1], run(value("a", error=2e-2))).is_same


def test_a_single_value_may_be_off_by_more_than_a_row_of_them() -> None:
    """Roundings that cancel by chance do so in one value, not in many."""
    for shape, is_same in (((), True), ((100,), False)):
        rounded = run(value("a", error=1e-4, shape=shape))

        assert judge("train.py", [rounded], run(value("a", error=2e-3, shape=shape))).is_same is is_same


def test_what_cannot_be_read_is_neither_right_nor_wrong() -> None:
    """Of both runs, or of one of them."""
    rounded = [run(value("a", unread="on the meta device"), value("b", error=NOISE))]
    found = judge("train.py", rounded, run(value("a", unread="on the meta device"), value("b", error=NOISE)))

    assert found.is_same
    assert (found.num_compared, found.incomparable) == (1, ("a: on the meta device",))


def test_what_rounding_alone_decides_is_not_compared() -> None:
    """Neither as right nor as wrong."""
    found = judge("train.py", [run(value("a", error=0.5))], run(value("a", error=10.0)))

    assert found.is_same
    assert found.num_compared == 0
    assert found.incomparable == ("a: rounding moves it by 50%",)


def test_nan_in_one_of_them_differs() -> None:
    """However small the rest is off."""
    assert not judge("train.py", [run(value("a"))], run(value("a", num_odd=1))).is_same


def test_numbers_without_rounding_must_be_equal() -> None:
    """As a count of batches."""

    def counter(error: float) -> StepValue:
        return StepValue(call=0, role="buffer", name="n", dtype="int64", shape=(), norm=4.0, error=error)

    assert judge("train.py", [run(counter(0.0))], run(counter(0.0))).is_same
    assert not judge("train.py", [run(counter(0.0))], run(counter(1.0))).is_same


def test_a_value_that_only_one_has_is_a_difference() -> None:
    """A gradient that compile lost, one that it made, another shape, and another number of calls."""
    both = run(value("a"), value("b"))

    assert judge("train.py", [both], run(value("a"))).one_sided == (OneSided("gradient", "b", "only in eager"),)
    assert not judge("train.py", [both], run(value("a"), value("b", problem="another shape"))).is_same
    assert not judge("train.py", [both], run(value("a"), value("b"), calls=2)).is_same


def test_stages_end_with_the_backend_of_the_program() -> None:
    """A program with backend aot_eager is compared with eager; any other with all."""
    assert stages_before(["aot_eager"]) == ("eager",)
    assert stages_before(["inductor"]) == STAGES
    assert stages_before(["aot_eager", "inductor"]) == STAGES


def next_after_one(letter: str) -> float:
    """Return the step from 1 to the next number of a format of `struct`."""
    bits = {"e": "H", "f": "I", "d": "Q"}[letter]
    (one,) = struct.unpack(bits, struct.pack(letter, 1.0))
    following: float = struct.unpack(letter, struct.pack(bits, one + 1))[0]
    return following - 1


def test_the_last_place_of_each_dtype() -> None:
    """The step from 1 to the next number; bfloat16 is float32 without its last sixteen bits."""
    half, single, double = map(next_after_one, "efd")

    assert {name: allowed(0.0, 1.0, name, 100) / UNITS for name in UNIT_OF} == {
        "float16": half, "float32": single, "float64": double, "complex64": single, "complex128": double,
        "bfloat16": single * 2**16,
    }  # fmt: skip
    assert allowed(0.0, 1.0, "int64", 100) == 0
