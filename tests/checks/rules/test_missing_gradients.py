"""Tensors without a gradient as findings: grouped by their cause, with lines, words and a remedy."""

from typing import get_args

import pytest

from gradinspect.checks.rules.detach_causes import MANNERS
from gradinspect.checks.rules.missing_gradients import (
    NoticedAt,
    Starved,
    frozen_finding,
    lost_term_finding,
    missing_findings,
    nearest_cut,
    nonleaf_finding,
    refused_finding,
)
from gradinspect.checks.rules.value_flow import Call, DetachCause, FlowOutcome
from gradinspect.graph import Frame


def line(number: int, code: str = "") -> Frame:
    """Make a line of train.py."""
    return Frame(file="train.py", line=number, code=code)


BACKWARD, STEP = line(20, "loss.backward()"), line(21, "opt.step()")
WISH = NoticedAt(kind="step", frame=STEP, by="opt")


def cut(name: str, at: int = 5, manner: DetachCause = "detach", **fields: object) -> Starved:
    """Make a parameter whose way is cut on a line."""
    given = {
        "wish": WISH, "op": "detach", "path": ("linear", "relu", "detach"), "read": line(3), "cut": line(at),
        "used": line(7), "backward": BACKWARD, **fields,
    }  # fmt: skip
    return Starved(name=name, kind="cut", manner=manner, **given)  # type: ignore[arg-type]


def test_one_cause_is_one_finding() -> None:
    """All parameters that a line starves stand in it; another line makes another finding."""
    found = list(missing_findings([cut("a"), cut("b", at=6), cut("c")]))

    assert [(one.code, one.subjects) for one in found] == [("GI301", ("a", "c")), ("GI301", ("b",))]
    assert [(place.role, place.line) for place in found[0].places] == [
        ("read", 3), ("cut", 5), ("used", 7), ("backward", 20), ("step", 21),
    ]  # fmt: skip
    assert found[0].text == (
        "a and c get no gradient. detach() ends the way of every gradient. The path of a: linear, relu, detach."
    )
    assert found[0].remedy == "Leave out detach() at train.py:5, if gradients are wanted there."


def test_gradients_that_were_switched_off_are_one_cause() -> None:
    """However many lines they covered; the line that switched them off is the cut."""
    off = {"manner": "grad_off", "off": line(2, "with torch.no_grad():")}
    (found,) = missing_findings([cut("a", at=5, **off), cut("b", at=6, **off)])  # type: ignore[arg-type]

    assert found.subjects == ("a", "b")
    assert [place.line for place in found.places if place.role == "cut"] == [2]


def test_a_sample_of_a_distribution() -> None:
    """It switches gradients off by itself, and has a sister that does not."""
    (found,) = missing_findings([cut("w", manner="grad_off", off=line(5, "z = Normal(m, s).sample()"))])

    assert "no_grad" not in found.text
    assert found.remedy.startswith("Use rsample() at train.py:5")


def test_the_same_line_is_not_named_twice() -> None:
    """Where the call that cut and the one that used it stand on one line."""
    (found,) = missing_findings([cut("a", used=line(5))])

    assert [place.role for place in found.places] == ["read", "cut", "backward", "step"]


def test_a_long_path_is_shortened() -> None:
    """Its beginning and its end are shown."""
    (found,) = missing_findings([cut("a", path=tuple(f"op{n}" for n in range(40)))])

    assert found.text.endswith("The path of a: op0, op1, op2, 34 more, op37, op38, op39.")


@pytest.mark.parametrize("manner", get_args(DetachCause))
def test_each_manner_has_words(manner: DetachCause) -> None:
    """With the operator and the line filled in."""
    (found,) = missing_findings([cut("w", manner=manner, op="frob", off=None)])

    assert found.code == ("GI402" if manner == "gradient" else "GI301")
    assert "train.py:5" in found.remedy
    assert "{" not in found.text + found.remedy
    assert set(MANNERS) == set(get_args(DetachCause))


def test_names_of_the_program_are_no_templates() -> None:
    """A file, an operator or a parameter may be called {where}."""
    odd = Frame(file="{where}.py", line=1, code="{op}")
    (found,) = missing_findings([cut("{op}", op="{used}", cut=odd)])

    assert found.text.startswith("{op} gets no gradient. {used}() ends")
    assert found.remedy == "Leave out {used}() at {where}.py:1, if gradients are wanted there."


def test_unused() -> None:
    """Where the value ended, and that Python got it."""
    starved = Starved(
        name="critic.weight", kind="unused", wish=WISH, manner="python", op="item", read=line(3), cut=line(9),
        backward=BACKWARD,
    )  # fmt: skip
    (found,) = missing_findings([starved])

    assert found.code == "GI303"
    assert [(place.role, place.line) for place in found.places][:2] == [("read", 3), ("last", 9)]
    assert found.text.endswith(
        "ends at train.py:9 with item: the loss does not depend on it, unless through the number that Python or NumPy "
        "got there, which is a constant to backward."
    )


def test_unread() -> None:
    """The module that was not called is named, with how many calls were watched; else that nothing reads them."""
    called = Starved(name="scale", kind="unread", wish=WISH, backward=BACKWARD)
    uncalled = Starved(name="fc2.weight", kind="unread", wish=WISH, backward=BACKWARD, module="fc2", num_calls=2)
    (alone,) = missing_findings([called])
    (other,) = missing_findings([uncalled])

    assert alone.code == other.code == "GI304"
    assert alone.text.startswith("scale gets no gradient: no operator reads it on the way to the loss. opt holds it")
    assert other.text.startswith("fc2.weight gets no gradient: fc2 was not called in the 2 backward calls watched.")
    assert other.remedy.endswith("If a later step uses fc2, watch more: --steps 10.")


def test_an_input_of_autograd_grad() -> None:
    """No optimizer holds it, and torch will refuse; the line is named once."""
    wish = NoticedAt(kind="grad", frame=BACKWARD)
    (found,) = missing_findings([Starved(name="x", kind="unread", wish=wish, backward=BACKWARD)])

    assert found.text.endswith("torch will refuse this autograd.grad.")
    assert [place.role for place in found.places] == ["backward"]


def test_a_loss_without_graph() -> None:
    """Cut, frozen, or of tensors that nobody wanted to learn."""
    wish = NoticedAt(kind="backward", frame=BACKWARD)
    by_cut = refused_finding([cut("w", wish=wish)], line(9), BACKWARD)
    frozen = frozen_finding(["a", "b"], line(2), line(9), BACKWARD)
    plain = refused_finding((), line(9), BACKWARD)

    assert by_cut.code == frozen.code == plain.code == "GI302"
    assert by_cut.text.endswith("torch will refuse this backward.")
    assert by_cut.subjects == ("w",)
    assert frozen.text.startswith("All parameters that it was computed from are frozen since train.py:2: a and b.")
    assert plain.text.startswith("No tensor that it was computed from requires grad.")
    assert refused_finding([cut("w", manner="gradient", wish=wish)], line(9), BACKWARD).code == "GI402"


def test_nothing_is_said_of_lines_that_nobody_saw() -> None:
    """A finding without its lines is a finding all the same."""
    finding = lost_term_finding(None, None, BACKWARD)
    nonleaf = nonleaf_finding("w", "", None, None, line(9))

    assert [place.role for place in finding.places] == ["backward"]
    assert finding.remedy == "Write create_graph=True at a line that was not seen."
    assert nonleaf.text == "w.grad is None: it was computed from another tensor. Backward fills .grad of leaves only."


def test_the_cut_nearest_to_the_loss_is_chosen() -> None:
    """With all tensors that meet it; what Python got is the last resort; switched-off gradients are one cause."""
    calls = [Call("op", frame=number // 2) for number in range(6)]
    far, near = FlowOutcome("cut", cut=0, manner="detach"), FlowOutcome("cut", cut=4, manner="detach")
    same_line, python = FlowOutcome("cut", cut=5, manner="integer"), FlowOutcome("cut", cut=5, manner="python")
    off = FlowOutcome("cut", cut=1, manner="grad_off")

    assert nearest_cut([far, near, FlowOutcome("unread"), same_line], calls) == [1, 3]
    assert nearest_cut([far, python], calls) == [0]
    assert nearest_cut([python], calls) == [0]
    assert nearest_cut([off, FlowOutcome("cut", cut=3, manner="grad_off")], calls) == [0, 1]
    assert nearest_cut([FlowOutcome("unread")], calls) == []
