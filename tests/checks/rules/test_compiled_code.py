"""What compiled code computes otherwise than eager, in words."""

from msgspec.structs import replace

from gradinspect.analyses.diff.compiled import (
    UNCUT,
    ComparedCall,
    CompiledDiff,
    CompiledValueDiff,
    OneSided,
    OperatorValue,
    Role,
    StepValue,
)
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.compiled_code import compiled_findings
from gradinspect.graph import Frame
from gradinspect.request import CompiledRegion

SAME = CompiledDiff(
    label="train.py", calls=(ComparedCall("backward #1", Frame("train.py", 20)),), num_compared=10, differences=(),
    one_sided=(), incomparable=(), largest=1e-7, largest_rounding=3e-7, num_graphs=2, breaks=(),
    backends=("inductor",), num_eager_calls=1,
)  # fmt: skip
OPERATOR = OperatorValue(
    direction="backward", operator="aten.mul", forward="gelu", module="h.3.mlp", frame=Frame("model.py", 31),
    error=0.5, rounding=1e-7, number=2,
)  # fmt: skip


def difference(role: Role, name: str, error: float, num_odd: int = 0) -> CompiledValueDiff:
    """Make a value that is off."""
    value = StepValue(
        call=0, role=role, name=name, dtype="float32", shape=(4,), norm=2.0, error=2 * error, num_odd=num_odd
    )
    return CompiledValueDiff(value=value, rounding=3e-7)


def finding(**changes: object) -> Finding:
    """Return the one finding on a comparison."""
    (found,) = compiled_findings(replace(SAME, **changes))
    return found


def test_nothing_is_found_where_nothing_differs() -> None:
    """But by rounding."""
    assert list(compiled_findings(SAME)) == []


def test_a_gradient_is_named_with_the_operator() -> None:
    """The worst of several, with the lines of backward and of the operator, which is the one to change."""
    found = finding(
        differences=(difference("gradient", "a", 0.1), difference("gradient", "b", 0.4)), operator=OPERATOR,
        stage="inductor", right=("eager", "aot_eager"),
    )  # fmt: skip

    assert (found.code, found.subjects) == ("GI251", ("a", "b"))
    assert [(place.role, place.line) for place in found.places] == [("backward", 20), ("operator", 31)]
    assert found.text == (
        "Under torch.compile the gradient of b is off by 4.0e-01 of its norm where rounding makes 3.0e-07, and 1 "
        "other. The first wrong operator is aten.mul in the backward of gelu of h.3.mlp, off by 5.0e-01. It goes "
        "wrong in inductor, the backend itself; it is right with eager and aot_eager."
    )
    assert found.remedy.startswith("Move model.py:31 into a function decorated with @torch.compiler.disable")


def test_what_forward_computes_counts_more_than_its_gradients() -> None:
    """They follow from it."""
    for role in ("loss", "buffer", "tensor"):
        found = finding(differences=(difference("gradient", "a", 0.1), difference(role, f"{role} 0", 0.2, num_odd=1)))

        assert (found.code, found.subjects) == ("GI252", (f"{role} 0", "a"))
        assert f"the {role} is NaN or Inf" in found.text


def test_what_is_zero_in_eager_has_no_norm_to_compare_with() -> None:
    """So it is off by no part of it."""
    other = difference("gradient", "a", 0.1)
    found = finding(differences=(replace(other, value=replace(other.value, norm=0.0)),))

    assert found.text.startswith("Under torch.compile the gradient of a is 0 in eager only. ")


def test_what_only_one_of_them_has() -> None:
    """A gradient that compile lost, and backward calls."""
    lost = finding(one_sided=(OneSided("gradient", "scale", "only in eager"),), stage="aot_eager", right=("eager",))
    calls = finding(num_eager_calls=2)

    assert (lost.code, lost.subjects) == ("GI251", ("scale",))
    assert "the gradient of scale: only in eager." in lost.text
    assert lost.text.endswith("which makes the backward graph; it is right with eager. The line is not known.")
    assert lost.remedy.startswith("Compile with backend='eager'")
    assert "it makes 1 backward call, in eager 2." in calls.text
    assert calls.remedy.startswith("What does the program do otherwise while it is compiled")


def test_memory_that_is_shared_in_one_of_them_only() -> None:
    """It is what forward returns, however right the values are."""
    lost = OneSided("memory", "flat and x", "shared only in eager")
    found = finding(one_sided=(lost,), stage="fast", right=("eager",))

    assert (found.code, found.subjects) == ("GI252", ("flat and x",))
    assert "Under torch.compile the memory of flat and x: shared only in eager." in found.text


def test_the_partitioner_is_told_from_the_rest_of_aot_autograd() -> None:
    """It is at fault where its graphs are right if it cuts nothing."""
    difference_of = (difference("gradient", "a", 0.1),)
    found = finding(differences=difference_of, stage="aot_eager", right=("eager", UNCUT))

    assert "It goes wrong in aot_eager, the partitioner of AOTAutograd, which decides what backward" in found.text
    assert found.remedy.startswith(f"Compile with backend='{UNCUT}'")
    assert "The line is not known" in found.text

    drawn = replace(OPERATOR, operator="aten.native_dropout", forward="dropout", is_drawn_again=True)
    found = finding(differences=difference_of, stage="aot_eager", right=("eager", UNCUT), operator=drawn)

    assert "Random numbers are drawn again by aten.native_dropout in the backward of dropout of h.3.mlp," in found.text
    assert [(place.role, place.line) for place in found.places] == [("backward", 20), ("operator", 31)]
    assert found.remedy.startswith(f"Compile with backend='{UNCUT}'")
    assert "The line is not known" not in found.text


def test_the_compiled_region_is_named_where_the_line_is_not_known() -> None:
    """With the line that compiles it, and what is known of the others."""
    off = (difference("gradient", "a", 0.1),)
    head, block = CompiledRegion("Head", Frame("train.py", 12)), CompiledRegion("Block.step", Frame("train.py", 14))
    one = finding(differences=off, stage="eager", regions=(head,), num_right_regions=2)
    both = finding(differences=off, stage="aot_eager", right=("eager",), regions=(head, block), num_right_regions=1)
    none = finding(differences=off, stage="aot_eager", right=("eager",), num_right_regions=3)
    only = finding(differences=off, stage="eager", regions=(head,))

    assert [(place.role, place.line) for place in one.places] == [("backward", 20), ("compiled", 12)]
    assert one.text.endswith(
        "The wrong region is Head, compiled at train.py:12; 2 others, compiled alone, are right. The line in it is not "
        "known."
    )
    assert (
        "The wrong regions are Head, compiled at train.py:12; Block.step, compiled at train.py:14; 1 other, compiled "
        "alone, is right." in both.text
    )
    assert none.text.endswith("Each of its 3 compiled regions is right if it is compiled alone. The line is not known.")
    assert "The wrong region is Head, compiled at train.py:12. The line in it" in only.text


def test_what_fails_in_eager_alone() -> None:
    """No values are compared; the backends that fail as eager does are named."""
    found = finding(
        eager_failure="The script failed with RuntimeError.", stage="inductor", right=("eager", "aot_eager")
    )

    assert found.code == "GI251"
    assert found.text == (
        "In eager: The script failed with RuntimeError. Under torch.compile the program goes on, with values that "
        "nobody compared. It fails with eager and aot_eager too. It goes on with inductor, the backend itself. "
        "gradinspect check --eager looks for the mistake."
    )
    assert not found.remedy


def test_a_result_whose_operators_are_right_alone_may_also_be_a_lost_write() -> None:
    """Fusion is only one of the reasons."""
    found = finding(differences=(difference("buffer", "a", 0.1),), operator=replace(OPERATOR, is_fused=True))

    assert "The first wrong result is aten.mul" in found.text
    assert "where the backend fuses operators, puts them in another order or loses a write." in found.text


def test_what_several_wrong_results_come_from() -> None:
    """No result of its own is known to be wrong."""
    shared = replace(OPERATOR, is_fused=True, num_results=3)
    found = finding(differences=(difference("gradient", "a", 0.1),), operator=shared)

    assert (
        "Of 3 wrong results, the worst off by 5.0e-01, the last operator that all come from is aten.mul in the "
        "backward of gelu of h.3.mlp, where the backend fuses operators"
    ) in found.text
