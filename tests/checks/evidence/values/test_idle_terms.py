"""Terms of a loss that were cut off from leaves that other terms reach, in flows made by hand."""

from types import SimpleNamespace

import pytest

from gradinspect.checks.evidence.values import idle_terms
from gradinspect.checks.evidence.values.idle_terms import MAX_ROUNDS, IdleTerms, split_terms
from gradinspect.checks.facts.value_flow import Call, DetachCause, Read

MAKER, JUDGE = 0, 1


def flow_of(cause: DetachCause | None) -> list[Call]:
    """Score what a maker made, detached or not, and add a penalty on it."""
    fake = Read(call=0, is_live=True)
    given = fake if cause is None else Read(call=1)
    return [
        Call("linear", reads=(Read(leaf=MAKER, is_live=True),)),
        Call("torch.Tensor.detach", reads=(fake,), cause=cause),
        Call("linear", reads=(given, Read(leaf=JUDGE, is_live=True))),
        Call("torch.Tensor.square", reads=(fake,)),
        Call("torch.Tensor.add", reads=(Read(call=2, is_live=True), Read(call=3, is_live=True))),
    ]


@pytest.mark.parametrize(("cause", "is_split"), [("detach", True), (None, False), ("integer", False)])
def test_a_term_is_split_off_by_detach_only(cause: DetachCause | None, is_split: bool) -> None:
    """It reaches the judge, and not the maker, which the penalty reaches."""
    found = [(one.made, one.cut, set(one.reached), set(one.lost))
             for one in split_terms(flow_of(cause), Read(call=4, is_live=True))]  # fmt: skip

    assert found == ([(2, 1, {JUDGE}, {MAKER})] if is_split else [])


def test_a_loss_of_one_term_has_no_other() -> None:
    """What misses its gradient then is another finding."""
    assert not list(split_terms(flow_of("detach"), Read(call=2, is_live=True)))


def test_a_long_loss_is_looked_at_in_a_few_calls_of_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are counted; a short one is looked at in all, also where another training has come before."""
    monkeypatch.setattr(idle_terms, "MAX_STEPS", 4)
    flow = SimpleNamespace(calls=flow_of("detach"), leaf=lambda _number: None)
    long, short = IdleTerms(flow, lambda _number: None), IdleTerms(flow, lambda _number: None)  # type: ignore[arg-type]
    for _ in range(MAX_ROUNDS + 3):
        long.begin(Read(call=4, is_live=True), None)
        short.begin(Read(call=2, is_live=True), None)

    assert (long.num_passed_over, short.num_passed_over) == (3, 0)
