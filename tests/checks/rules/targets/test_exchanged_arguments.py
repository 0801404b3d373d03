"""Labels that are given first, as findings."""

from gradinspect.checks.facts.targets import ExchangedArguments
from gradinspect.checks.rules.targets.exchanged_arguments import exchanged_findings
from gradinspect.graph import Frame

MADE = Frame(file="train.py", line=3, code="p = net(x)")


def remedy(code: str) -> str:
    """Return what to do about a line."""
    fact = ExchangedArguments(loss="bce", num_calls=4, made=MADE, used=Frame(file="train.py", line=5, code=code))
    (found,) = exchanged_findings(fact)
    assert [(place.role, place.line) for place in found.places] == [("scores", 3), ("loss", 5)]
    return found.remedy.removeprefix("Exchange the first two arguments at train.py:5")


def test_the_call_is_written_the_other_way_round() -> None:
    """If it is the only one with two arguments on its line."""
    assert remedy("loss = F.bce(y, p)") == ": (p, y)."
    assert remedy("loss = bce(y.float(), net(x), reduction='sum')") == ": (net(x), y.float())."
    assert remedy("loss = bce(*pair)") == remedy("loss = bce(y, torch.add(p, q))") == remedy("bce(y,") == "."


def test_what_was_given_is_named() -> None:
    """By its variable, and with how often."""
    used = Frame(file="train.py", line=3, code="loss = bce(y, p)")
    (once,) = exchanged_findings(ExchangedArguments(loss="bce", num_calls=1, made=used, used=used))
    (often,) = exchanged_findings(ExchangedArguments(loss="bce", num_calls=2, used=None))

    assert once.text.startswith("In its only call, train.py:3 gives bce y as the input, which is 0 or 1 everywhere")
    assert [place.role for place in once.places] == ["loss"]
    assert "gives bce the labels as the input" in often.text
