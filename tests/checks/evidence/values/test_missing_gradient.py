"""Records of tensors without a gradient, of calls made by hand."""

from types import SimpleNamespace
from typing import Any

import pytest
from rule_sentences import line

from gradinspect.checks.evidence.lines.replaced import ReplacedVariable
from gradinspect.checks.evidence.values.missing_gradient import explained, outcomes_of
from gradinspect.checks.facts.value_flow import Call, FlowOutcome, Read
from gradinspect.checks.facts.values import MissingGradient, NoticedAt

LEAF = Read(leaf=0, is_live=True)
OTHER = Read(leaf=1, is_live=True)
STEP = NoticedAt(kind="step", frame=line(30))


def flow(*calls: Call, **known: Any) -> Any:
    """Stand for the flow of values, of which some is known."""
    nothing: Any = lambda call: None  # noqa: E731  # a column
    return SimpleNamespace(**{
        "calls": calls, "caller_of": nothing, "switched_off_at": nothing, "checkpointed_at": nothing,
        "replaced_at": nothing, "forced": {}, **known,
    })  # fmt: skip


def test_of_several_losses_the_last_that_explains_a_tensor_counts() -> None:
    """A cut says more than that another loss does not use it."""
    calls = [
        Call("exp", (LEAF,)), Call("detach", (Read(0, is_live=True),), cause="detach"),
        Call("mul", (Read(1), OTHER)), Call("exp", (OTHER,)),
        Call("exp", (LEAF,)), Call("data", (Read(4, is_live=True),), cause="data"), Call("mul", (Read(5), OTHER)),
    ]  # fmt: skip
    first, other, last = (Read(call, is_live=True) for call in (2, 3, 6))
    third = Read(leaf=2, is_live=True)

    def cuts(*roots: Read) -> list[tuple[str, int | None]]:
        return [(one.kind, one.cut) for one in outcomes_of(flow(*calls), [LEAF, third], roots)]

    assert cuts(first, other) == [("cut", 1), ("unread", None)]
    assert cuts(first, last) == [("cut", 5), ("unread", None)]
    assert cuts(last, first, other) == [("cut", 1), ("unread", None)]
    assert cuts(other) == [("unused", 4), ("unread", None)]


LINES = {
    1: "print(a.item())", 2: "v = a.item()", 3: "w = a.item()", 4: "x = torch.tensor(v)",
    5: "x = torch.tensor(a.item())",
}  # fmt: skip


def python_cut(*exits: int | None, used: int | None) -> int | None:
    """Return the line that is said to have taken a value to Python, of several that did."""
    calls = [*(Call("item", (LEAF,), frame, "python") for frame in exits), Call("torch.tensor", frame=used)]
    outcome = FlowOutcome(
        "cut", 0, 0, len(exits), "python", (0,), exits=tuple(range(len(exits)))
    )  # fmt: skip
    found = record(flow(*calls), outcome)
    return None if found.cut is None else found.cut.line


def record(known: Any, outcome: FlowOutcome) -> MissingGradient:
    """Make the record of a tensor."""
    return explained(
        known,
        MissingGradient(name="w", kind="unread", noticed=STEP, backward=line(20)),
        outcome,
        lambda number: None if number is None else line(number, LINES.get(number, "")),
    )


@pytest.mark.parametrize(
    ("exits", "used", "cut"),
    [
        ((1, 2, 3), 4, 2),  # it assigns what the tensor is made of
        ((2, 2, 3), 4, 2),
        ((1, 3), 4, 3),  # it is not printed
        ((1, 1), 4, 1),
        ((1, 5, 3), 5, 5),  # the line itself
        ((None, 3), 4, None),
        ((1,), 4, 1),
        ((3, 2), None, 3),  # where it came back is not known
    ],
)
def test_the_line_that_took_a_value_to_python(exits: tuple[int | None, ...], used: int | None, cut: int | None) -> None:
    """That from which a tensor is made again, rather than one that shows it."""
    assert python_cut(*exits, used=used) == cut


def test_what_is_recorded_of_a_cut() -> None:
    """Its lines, its path, how many tensors it read; the scope or the checkpoint around it if that was the cause."""
    calls = [
        Call("torch.Tensor.exp", (LEAF,), 11), Call("torch.stack", (Read(0, is_live=True), OTHER), 12, "grad_off"),
        Call("mul", (Read(1), OTHER), 13),
    ]  # fmt: skip
    outcome = FlowOutcome("cut", 0, 1, 2, "grad_off", (0, 1), into=3)
    known = flow(
        *calls, switched_off_at=lambda call: 40 + call, checkpointed_at=lambda call: 50 + call, forced={3: 14},
        replaced_at=lambda call: ReplacedVariable("loss", 60 + call, 70 + call),
    )  # fmt: skip
    off, checkpointed, detached = (
        record(known, outcome._replace(cause=cause)) for cause in ("grad_off", "checkpoint", "detach")
    )
    unused = record(known, FlowOutcome("unused", 0, 1))
    unread = record(known, FlowOutcome("unread"))

    assert (off.op, off.num_read, off.path, off.kind, off.name) == ("stack", 2, ("exp", "stack"), "cut", "w")
    assert [frame and frame.line for frame in (off.read, off.cut, off.used, off.forced, off.backward)] == [
        11, 12, 13, 14, 20,
    ]  # fmt: skip
    assert [one.off and one.off.line for one in (off, checkpointed, detached)] == [41, 51, None]
    assert (unused.op, unused.cut and unused.cut.line, unused.called) == ("stack", 12, None)
    assert (unused.variable, unused.assigned and unused.assigned.line, unused.replaced and unused.replaced.line) == (
        "loss", 61, 71,
    )  # fmt: skip
    assert (detached.variable, unread.variable, detached.replaced) == ("", "", None)
    assert (unread.op, unread.num_read, unread.path, unread.read, unread.cut) == ("", 1, (), None, None)
