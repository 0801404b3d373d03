"""A checkpointed block whose two runs differ, in words."""

from factories import tensor_info

from gradinspect.checks.facts.backward_calls import UnequalRuns
from gradinspect.checks.facts.graphs import KeptTensor, Mismatch
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.graphs.checkpoint_mismatch import checkpoint_findings
from gradinspect.graph import Frame

BACKWARD = Frame(file="train.py", line=30, code="loss.backward()")


def kept(line: int, *shape: int, op: str | None = "linear", dtype: str = "float32") -> KeptTensor:
    """A tensor that was saved on a line of the block."""
    return KeptTensor(info=tensor_info(*shape, dtype=dtype), op=op, frame=Frame(file="block.py", line=line, code="..."))


def finding(first: KeptTensor | None, again: KeptTensor | None, num_first: int = 3, num_again: int = 3) -> Finding:
    """What is said of one mismatch."""
    mismatch = Mismatch(position=2, first=first, again=again, num_first=num_first, num_again=num_again)
    (found,) = checkpoint_findings(UnequalRuns(mismatch, BACKWARD))
    return found


def test_another_shape_is_refused() -> None:
    """Both operators, both shapes, and that torch will fail."""
    found = finding(kept(4, 2, 8), kept(4, 2, 16))

    assert found.code == "GI104"
    assert [(place.role, place.line) for place in found.places] == [("first", 4), ("again", 4), ("backward", 30)]
    assert found.text == (
        "At position 2 the block saved f32[2, 8] for linear in the forward pass, but f32[2, 16] for linear in the "
        "recomputation. This backward will fail."
    )
    assert found.remedy.startswith("Why does block.py:4 get a different tensor in the recomputation")


def test_another_dtype_is_about_autocast() -> None:
    """The remedy is another one."""
    found = finding(kept(4, 2, dtype="bfloat16"), kept(4, 2))

    assert "bf16[2] for linear" in found.text
    assert found.remedy.startswith("Fix the dtype at block.py:4")


def test_another_line_with_the_same_shape_is_silent() -> None:
    """That is what torch does not see."""
    found = finding(kept(4, 2), kept(6, 2, op=None))

    assert found.text.endswith("but f32[2] in the recomputation. Shapes and dtypes agree, so torch does not "
                               "notice, and gradients will be wrong.")  # fmt: skip
    assert "leads to block.py:6" in found.remedy


def test_a_run_that_ends_early_or_late() -> None:
    """The side that has nothing more has no line, and both numbers are told."""
    shorter = finding(kept(4, 2), None, 3, 2)
    longer = finding(None, kept(6, 2), 2, 3)

    assert [place.role for place in shorter.places] == ["first", "backward"]
    assert (
        "nothing more in the recomputation. It saved 3 tensors in the forward pass and 2 in the recomputation."
        in shorter.text
    )
    assert [place.role for place in longer.places] == ["again", "backward"]
    assert "block.py:6" in longer.remedy


def test_what_torch_compares() -> None:
    """The number of tensors and their shapes; only where both agree it does not notice."""
    one, other = kept(4, 2), kept(6, 2)
    silent = [
        (first, again, counts)
        for first, again in ((one, other), (one, None), (None, other), (one, kept(6, 3)))
        for counts in ((3, 3), (3, 2))
        if "torch does not notice" in finding(first, again, *counts).text
    ]

    assert silent == [(one, other, (3, 3))]


def test_the_line_that_is_known_is_named() -> None:
    """That of the recomputation, else that of the forward pass, else none."""
    remedies = [finding(first, again).remedy for first, again in ((kept(4, 2), None), (None, kept(6, 2)), (None, None))]

    assert [remedy.partition(" before the block")[0] for remedy in remedies] == [
        f"Make the decision that leads to {where}" for where in ("block.py:4", "block.py:6", "an unknown line")
    ]
