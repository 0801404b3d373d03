"""Tensors without a gradient as findings: grouped by their cause, with lines, words and a remedy."""

from typing import Any, get_args

import pytest
from msgspec.structs import replace

from gradinspect.checks.facts.value_flow import DetachCause
from gradinspect.checks.facts.values import (
    GradientTerm,
    LossWithoutGraph,
    MissingGradient,
    NonLeafGradient,
    NoticedAt,
    by_cause,
)
from gradinspect.checks.findings import Finding
from gradinspect.checks.registry import findings_on
from gradinspect.checks.rules.flow.detach_causes import DETACH_REMEDIES
from gradinspect.checks.rules.flow.gradient_terms import term_findings
from gradinspect.checks.rules.flow.loss_without_graph import refused_findings
from gradinspect.checks.rules.flow.nonleaf_gradients import nonleaf_findings
from gradinspect.graph import Frame


def line(number: int, code: str = "") -> Frame:
    """Make a line of train.py."""
    return Frame(file="train.py", line=number, code=code)


BACKWARD, STEP = line(20, "loss.backward()"), line(21, "opt.step()")
NOTICED = NoticedAt(kind="step", frame=STEP, by="opt")


def cut(name: str, at: int = 5, cause: DetachCause = "detach", **fields: object) -> MissingGradient:
    """Make a parameter that is detached on a line."""
    given = {
        "noticed": NOTICED, "op": "detach", "path": ("linear", "relu", "detach"), "read": line(3), "cut": line(at),
        "used": line(7), "backward": BACKWARD, **fields,
    }  # fmt: skip
    return MissingGradient(name=name, kind="cut", cause=cause, **given)  # type: ignore[arg-type]


def missing_findings(missing: list[MissingGradient]) -> list[Finding]:
    """What the rules say of them."""
    return [finding for group in by_cause(missing) for finding in findings_on(group)]


def test_one_cause_is_one_finding() -> None:
    """All parameters that a line detaches are in it; another line makes another finding."""
    found = list(missing_findings([cut("a"), cut("b", at=6), cut("c")]))

    assert [(one.code, one.subjects) for one in found] == [("GI301", ("a", "c")), ("GI301", ("b",))]
    assert [(place.role, place.line) for place in found[0].places] == [
        ("read", 3), ("detached", 5), ("used", 7), ("backward", 20), ("step", 21),
    ]  # fmt: skip
    assert found[0].text == (
        "No gradient reaches a and c. detach() stops gradient flow. The path of a: linear, relu, detach."
    )
    assert found[0].remedy == "Remove detach() at train.py:5 if this path should train."


def test_gradients_that_were_switched_off_are_one_cause() -> None:
    """However many lines they covered; the line that switched them off is the cut."""
    off = {"cause": "grad_off", "off": line(2, "with torch.no_grad():")}
    (found,) = missing_findings([cut("a", at=5, **off), cut("b", at=6, **off)])  # type: ignore[arg-type]

    assert found.subjects == ("a", "b")
    assert [place.line for place in found.places if place.role == "detached"] == [2]


def test_a_sample_of_a_distribution() -> None:
    """It switches gradients off by itself, and has a sister that does not."""
    (found,) = missing_findings([cut("w", cause="grad_off", off=line(5, "z = Normal(m, s).sample()"))])

    assert "no_grad" not in found.text
    assert found.remedy.startswith("Use rsample() at train.py:5")


def test_the_same_line_is_not_named_twice() -> None:
    """Where the call that cut and the one that used it stand on one line."""
    (found,) = missing_findings([cut("a", used=line(5))])

    assert [place.role for place in found.places] == ["read", "detached", "backward", "step"]


def test_a_long_path_is_shortened() -> None:
    """Its beginning and its end are shown."""
    (found,) = missing_findings([cut("a", path=tuple(f"op{n}" for n in range(40)))])

    assert found.text.endswith("The path of a: op0, op1, op2, 34 more, op37, op38, op39.")


@pytest.mark.parametrize("cause", get_args(DetachCause))
def test_each_cause_has_words(cause: DetachCause) -> None:
    """With the operator and the line filled in."""
    (found,) = missing_findings([cut("w", cause=cause, op="frob", off=None)])

    assert found.code == ("GI402" if cause == "gradient" else "GI301")
    assert "train.py:5" in found.remedy
    assert "{" not in found.text + found.remedy
    assert set(DETACH_REMEDIES) == set(get_args(DetachCause))


def test_names_of_the_program_are_no_templates() -> None:
    """A file, an operator or a parameter may be called {where}."""
    odd = Frame(file="{where}.py", line=1, code="{op}")
    (found,) = missing_findings([cut("{op}", op="{used}", cut=odd)])

    assert found.text.startswith("No gradient reaches {op}. {used}() stops")
    assert found.remedy == "Remove {used}() at {where}.py:1 if this path should train."


def test_unused() -> None:
    """Where the value ended, and that Python got it."""
    dropped = MissingGradient(
        name="critic.weight", kind="unused", noticed=NOTICED, cause="python", op="item", read=line(3), cut=line(9),
        backward=BACKWARD,
    )  # fmt: skip
    (found,) = missing_findings([dropped])

    assert found.code == "GI303"
    assert [(place.role, place.line) for place in found.places][:2] == [("read", 3), ("last", 9)]
    assert found.text.endswith(
        "ends at train.py:9 with item, and the loss does not depend on it, except perhaps through a Python or NumPy "
        "number, which is a constant to backward."
    )


def test_unread() -> None:
    """The module that was not called is named, with how many calls were observed; else that nothing reads them."""
    called = MissingGradient(name="scale", kind="unread", noticed=NOTICED, backward=BACKWARD)
    uncalled = MissingGradient(
        name="fc2.weight", kind="unread", noticed=NOTICED, backward=BACKWARD, module="fc2", num_calls=2
    )
    (alone,) = missing_findings([called])
    (other,) = missing_findings([uncalled])

    assert alone.code == other.code == "GI304"
    assert alone.text.startswith("No gradient reaches scale: no operator on the way to the loss reads it. opt holds it")
    assert other.text.startswith("No gradient reaches fc2.weight: fc2 was not called in 2 observed backward calls.")
    assert other.remedy.endswith("If a later step uses fc2, check more calls: --steps 10.")


def test_what_nothing_reads_is_named_where_it_was_made() -> None:
    """Each line once."""
    unread = [
        MissingGradient(name=name, kind="unread", noticed=NOTICED, backward=BACKWARD, made=line(at))
        for name, at in (("a.weight", 2), ("a.bias", 2), ("b", 4))
    ]
    (found,) = missing_findings(unread)

    assert [(place.role, place.line) for place in found.places][:2] == [("made", 2), ("made", 4)]


def test_an_input_of_autograd_grad() -> None:
    """No optimizer holds it, and torch will refuse; the line is named once."""
    noticed = NoticedAt(kind="grad", frame=BACKWARD)
    (found,) = missing_findings([MissingGradient(name="x", kind="unread", noticed=noticed, backward=BACKWARD)])

    assert found.text.endswith("This autograd.grad will fail.")
    assert [place.role for place in found.places] == ["backward"]


def without_graph(**fields: Any) -> Finding:
    """Judge a loss that does not require grad."""
    (found,) = refused_findings(LossWithoutGraph(made=line(9), backward=BACKWARD, **fields))
    return found


def test_a_loss_without_graph() -> None:
    """Detached, frozen, or computed from tensors that do not require grad."""
    noticed = NoticedAt(kind="backward", frame=BACKWARD)
    by_cut = without_graph(detached=(cut("w", noticed=noticed),))
    frozen = without_graph(frozen=["a", "b"], frozen_at=line(2))
    plain = without_graph()

    assert by_cut.code == frozen.code == plain.code == "GI302"
    assert by_cut.text.endswith("This backward will fail.")
    assert by_cut.subjects == ("w",)
    assert frozen.text.startswith("All parameters it was computed from are frozen since train.py:2: a and b.")
    assert plain.text.startswith("None of the tensors it was computed from requires grad.")
    assert without_graph(detached=(cut("w", cause="gradient", noticed=noticed),)).code == "GI402"


def test_a_loss_that_was_made_a_leaf() -> None:
    """The line that did it hides the error; a threshold has a form with a gradient, other integers have a loss."""
    forced = {"cause": "integer", "forced": line(9, "loss.requires_grad_()")}
    soft, other = (
        missing_findings([cut("w", op=op, path=(), **forced)])[0]  # type: ignore[arg-type]
        for op in ("gt", "argmax")
    )

    assert [place.role for place in soft.places] == ["read", "detached", "used", "forced", "backward", "step"]
    assert "train.py:9 makes a leaf of what is computed from it" in soft.text
    assert soft.remedy.startswith("At train.py:5, use the compared tensor itself instead of the comparison")
    assert other.remedy.startswith("Compute the loss from the scores behind argmax at train.py:5")


def test_a_value_that_another_loss_needs_without_its_graph() -> None:
    """The discriminator's loss; the generator's is another."""
    other = line(12, "loss_d.backward()")
    (found,) = missing_findings([cut("w", other=other)])

    assert found.remedy == (
        "If only loss.backward() at train.py:20 should train them, keep detach() at train.py:5 for loss_d.backward() "
        "at train.py:12, and compute the same again with its graph for the other loss."
    )


def test_unknown_lines_are_left_out() -> None:
    """A finding without its lines is a finding all the same."""
    (finding,) = term_findings(GradientTerm(backward=BACKWARD))
    (nonleaf,) = nonleaf_findings(NonLeafGradient(name="w", read=line(9)))

    assert [place.role for place in finding.places] == ["backward"]
    assert finding.remedy == "Pass create_graph=True at an unknown line."
    assert nonleaf.text == "w.grad is None: it was computed from another tensor. Backward fills .grad of leaves only."


def test_what_is_unused_may_be_used_later() -> None:
    """After four times as many calls, ten at least; modules that were not called are named, each once."""

    def unread(calls: int | None, *modules: str | None) -> Finding:
        names = [MissingGradient(name=f"w{place}", kind="unread", noticed=NOTICED, module=module, num_calls=calls)
                 for place, module in enumerate(modules)]  # fmt: skip
        (finding,) = missing_findings(names)
        return finding

    assert unread(2, "head").remedy.endswith(" If a later step uses head, check more calls: --steps 10.")
    assert unread(3, None).remedy.endswith(" If a later step uses it, check more calls: --steps 12.")
    assert unread(None, None).remedy.endswith("or remove it from the optimizer.")
    assert unread(1, "head", "head").text.startswith(
        "No gradient reaches w0 and w1: head was not called in 1 observed backward call."
    )
    assert unread(2, "head", "tail").text.startswith(
        "No gradient reaches w0 and w1: head and tail were not called in 2 observed backward calls."
    )
    assert unread(None, None).text == (
        "No gradient reaches w0: no operator on the way to the loss reads it. opt holds it but never updates it."
    )


def test_one_and_several_are_told_apart() -> None:
    """In what becomes of them and in the advice; names that are equal are one."""

    def dropped(*names: str) -> Finding:
        (finding,) = missing_findings([
            MissingGradient(name=name, kind="unused", cause="gradient", noticed=NOTICED, op="exp", cut=line(9))
            for name in names
        ])  # fmt: skip
        return finding

    def unread(*names: str) -> Finding:
        (finding,) = missing_findings([MissingGradient(name=name, kind="unread", noticed=NOTICED) for name in names])
        return finding

    assert dropped("a").text == (
        "No gradient reaches a. What is computed from it ends at train.py:9 with exp, and the loss does not depend on "
        "it."
    )
    assert dropped("a", "a").remedy == "Add what train.py:9 computes to the loss, or remove it from the optimizer."
    assert dropped("a", "b").remedy == "Add what train.py:9 computes to the loss, or remove them from the optimizer."
    assert unread("a", "a").text.endswith("the loss reads it. opt holds it but never updates it.")
    assert unread("a", "b").text.endswith("the loss reads them. opt holds them but never updates them.")
    assert unread("a", "b").remedy.startswith("Use them in forward, or remove them from the optimizer.")


def test_the_call_of_the_helper_that_detached_is_named() -> None:
    """But not of the scope that disabled gradients."""
    called = line(30)
    (by_helper,) = missing_findings([cut("a", called=called)])
    (by_scope,) = missing_findings([cut("a", cause="grad_off", off=line(2, "with torch.no_grad():"), called=called)])

    assert [(place.role, place.line) for place in by_helper.places][1:3] == [("detached", 5), ("called", 30)]
    assert [place.role for place in by_scope.places].count("called") == 0


def test_a_tensor_that_is_no_leaf() -> None:
    """What made it, if that is known; with leaves that have a name, it is an intermediate tensor."""
    made = NonLeafGradient(name="w", op="mul", made=line(2), backward=line(9), read=line(10))
    (named,) = nonleaf_findings(made)
    (unnamed,) = nonleaf_findings(replace(made, op="", backward=None))
    (inner,) = nonleaf_findings(replace(made, name="h", leaves=["a", "b"]))

    assert named.text.startswith("w.grad is None: mul made it from another tensor, which is the leaf.")
    assert [(place.role, place.line) for place in named.places] == [("made", 2), ("backward", 9), ("read", 10)]
    assert "at train.py:2, append .detach().requires_grad_() to what is assigned, as in" in named.remedy
    assert "append .detach().requires_grad_() to what is assigned, as in" in unnamed.remedy
    assert inner.remedy == "Call h.retain_grad() before backward, or read the .grad of a and b."
