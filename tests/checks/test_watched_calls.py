"""Findings of several calls, looked at together."""

from msgspec.structs import replace

from gradinspect.checks.findings import Finding, place_of
from gradinspect.checks.watched_calls import WatchedCall, findings_of_calls, held_back_findings
from gradinspect.graph import Frame

BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")
ELSEWHERE = replace(BACKWARD, line=20)
ONCE = Finding(code="GI501", title="", text="", places=place_of("made", BACKWARD), remedy="")
EACH_TIME = replace(ONCE, code="GI601")
DEAD = replace(EACH_TIME, text="No gradient reaches a, b and c.", subjects=("a", "b", "c"))


def call(
    *judged: Finding, line: Frame | None = BACKWARD, nodes: tuple[int, ...] = (), learned: str = ""
) -> WatchedCall:
    """A call that completed."""
    return WatchedCall(
        line=line, judged=list(judged), nodes=frozenset(nodes), parameters={name: ord(name) for name in "abc"},
        learned=set(map(ord, learned)), is_complete=True,
    )  # fmt: skip


TWICE = replace(ONCE, code="GI602")


def found(*calls: WatchedCall) -> list[Finding]:
    """What is found in some calls."""
    return list(findings_of_calls(calls, {"GI601": 1, "GI602": 2}))


def test_what_may_happen_by_chance_counts_if_every_call_of_the_line_shows_it() -> None:
    """A call on another line says nothing about it, nor one that failed, and other codes count at once."""
    failed = WatchedCall(line=BACKWARD)

    assert found(call(EACH_TIME), call()) == []
    assert found(call(EACH_TIME), call(line=ELSEWHERE)) == [EACH_TIME]
    assert found(call(EACH_TIME), failed) == [EACH_TIME]
    assert found(call(EACH_TIME), call(EACH_TIME)) == [EACH_TIME] * 2
    assert found(call(ONCE), call()) == [ONCE]
    assert found(call(EACH_TIME, line=None)) == [EACH_TIME]


def test_a_line_may_have_trained_another_model_before() -> None:
    """Calls that do not reach the parameters of a finding say nothing about it."""
    before = WatchedCall(line=BACKWARD, parameters={"a": 1, "z": 2}, is_complete=True)

    assert found(before, call(DEAD)) == [DEAD]
    assert found(call(), call(DEAD)) == []


def test_findings_come_in_the_order_of_the_calls() -> None:
    """What an earlier call made comes before what a later one met at its start."""
    later = WatchedCall(line=BACKWARD, found=[EACH_TIME])

    assert found(call(ONCE), later) == [ONCE, EACH_TIME]


def test_a_parameter_that_learns_by_another_loss_of_the_same_graph_is_not_dead() -> None:
    """Only the others are named; a graph of its own says nothing about it."""
    shared = call(line=ELSEWHERE, nodes=(2, 3), learned="ac")
    alone = call(line=ELSEWHERE, nodes=(4,), learned="abc")
    dead = call(DEAD, nodes=(1, 2))
    (one,) = found(dead, shared, alone)

    assert (one.subjects, one.text) == (("b",), "No gradient reaches b.")
    assert found(dead, call(nodes=(2,), learned="abc", line=ELSEWHERE)) == []
    assert found(dead, alone) == [DEAD]


def test_what_is_held_back_is_told_apart() -> None:
    """A later call may show that it is none; what is certain is not held back."""
    assert held_back_findings([call(ONCE, EACH_TIME)], {"GI601": 1}) == [EACH_TIME]
    assert held_back_findings([call(EACH_TIME), call()], {"GI601": 1}) == []


def test_some_need_a_second_call() -> None:
    """Zeros of the first step may be gone in the second."""
    assert found(call(TWICE)) == []
    assert found(call(TWICE), call(TWICE)) == [TWICE] * 2
    assert found(call(TWICE), call()) == []


def test_a_unit_that_dies_and_stays_dead_is_found() -> None:
    """Three calls in a row up to the last, and only inside a network: a margin that is kept is no mistake."""
    alive, dead, kept = call(), call(EACH_TIME), call(EACH_TIME)
    dead.zeroed_inside = frozenset(EACH_TIME.places)

    assert found(alive, dead, dead, dead) == [EACH_TIME] * 3
    assert found(alive, dead, dead) == []
    assert found(alive, dead, dead, dead, alive) == []
    assert found(alive, kept, kept, kept) == []
    assert held_back_findings([alive, dead], {"GI601": 1}) == [EACH_TIME]
