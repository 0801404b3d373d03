"""The rules about what is odd about parameters, on facts made by hand."""

from typing import Literal

from gradinspect.checks.facts.training import (
    DroppedResult,
    HookPile,
    IneffectiveFlag,
    MovedFrozen,
    SpoilingHook,
    TwoInOneMemory,
)
from gradinspect.checks.findings import Finding
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def line(number: int, code: str = "...") -> Frame:
    """Make a line of the program."""
    return Frame(file="train.py", line=number, code=code)


def judged(fact: object) -> Finding:
    """Return the only finding."""
    (finding,) = findings_on(fact)
    return finding


def lines_of(finding: Finding) -> list[tuple[str, int]]:
    """List the roles and lines."""
    return [(place.role, place.line) for place in finding.places]


def test_a_flag_of_tensors_is_corrected_and_one_of_modules_replaced_by_the_method() -> None:
    """With what the program sets it of, as it is written there."""
    tensors = judged(IneffectiveFlag(attribute="require_grad", names=("a.weight",), target="p", set=line(3)))
    modules = judged(
        IneffectiveFlag(
            attribute="requires_grad", names=("a.weight", "b.weight"), modules=("a", ""), target="net.a", set=line(3),
            backward=line(9),
        )
    )  # fmt: skip

    assert (tensors.code, tensors.remedy) == ("GI374", "Write p.requires_grad = False at train.py:3.")
    assert "a.weight still requires grad" in tensors.text
    assert modules.text.startswith("train.py:3 sets .requires_grad of a and the model, modules, but torch reads ")
    assert modules.remedy.startswith("Call net.a.requires_grad_(False) at train.py:3")
    assert lines_of(modules) == [("set", 3), ("backward", 9)]


def test_weights_are_tied_by_the_parameter_as_the_line_names_it() -> None:
    """Without what made it data; by the parameters' own names if the line is no such assignment."""

    def remedy(code: str) -> str:
        fact = TwoInOneMemory(first="embed.weight", second="out.weight", made=line(4, code), step=line(9))
        return judged(fact).remedy.partition("made: ")[2]

    assert remedy("self.out.weight.data = self.embed.weight.data") == "self.out.weight = self.embed.weight"
    assert remedy("m.out.weight = nn.Parameter(m.embed.weight.detach())") == "m.out.weight = m.embed.weight"
    assert remedy("tie(model)") == remedy("a, b =") == "out.weight = embed.weight"


def test_transposed_weights_cannot_be_one_parameter() -> None:
    """So one layer uses the transpose of the other's."""
    finding = judged(TwoInOneMemory(first="a", second="b", is_same_shape=False, made=line(4), step=line(9)))

    assert finding.code == "GI375"
    assert lines_of(finding) == [("shared", 4), ("step", 9)]
    assert "F.linear(x, a.t()) in place of b" in finding.remedy


def test_a_frozen_parameter_that_moves_has_its_gradient_removed() -> None:
    """After the line that froze it."""
    finding = judged(MovedFrozen(optimizer="opt", names=("a",), frozen=line(2), step=line(6)))

    assert (finding.code, lines_of(finding)) == ("GI376", [("frozen", 2), ("step", 6)])
    assert finding.text.startswith("a does not require grad since train.py:2, but has a gradient left from before")
    assert finding.remedy.startswith("Set .grad of this parameter to None after train.py:2")


def test_hooks_that_pile_up_are_counted() -> None:
    """With the line that registers them."""
    finding = judged(HookPile(kind="forward", names=("a", "b"), count=3, registered=line(5), backward=line(8)))

    assert (finding.code, lines_of(finding)) == ("GI802", [("hooked", 5), ("backward", 8)])
    assert "registers one more forward hook on a and b in each iteration" in finding.text
    assert "there were 3 on each" in finding.text


def test_a_hook_that_spoils_gradients_is_named_by_what_it_does() -> None:
    """The advice differs: a minus sign, a parameter to be frozen, a value to be cut off."""

    def told(effect: Literal["zeroed", "reversed"], *names: str) -> tuple[str, str]:
        finding = judged(SpoilingHook(effect=effect, names=names, registered=line(4), backward=line(9)))
        assert (finding.code, lines_of(finding)) == ("GI803", [("hooked", 4), ("backward", 9)])
        return finding.text, finding.remedy

    text, remedy = told("reversed", "fc.weight")
    assert "reverses the sign of the gradient of fc.weight" in text
    assert remedy.startswith("Leave out the minus sign in the hook of train.py:4.")
    text, remedy = told("zeroed", "fc.weight", "fc.bias")
    assert "returns only zeros for the gradient of fc.weight and fc.bias, which" in text
    assert remedy.startswith("To freeze them, call requires_grad_(False)")
    text, remedy = told("zeroed")
    assert "nothing behind its tensor learns" in text
    assert "use detach() instead of the hook" in remedy


def test_a_dropped_result_is_assigned_to_what_the_call_was_given() -> None:
    """The tensor of a method, or the first argument of a function of torch, as the line writes them."""

    def remedy(code: str) -> str:
        finding = judged(DroppedResult(name="f", called=line(3, code), backward=line(7)))
        assert (finding.code, lines_of(finding)) == ("GI307", [("called", 3), ("backward", 7)])
        return finding.remedy.removeprefix("Assign the result at train.py:3")

    assert remedy("self.q.detach()  # the target") == ": self.q = self.q.detach()"
    assert remedy("scores.masked_fill(mask, -1e9)") == ": scores = scores.masked_fill(mask, -1e9)"
    assert remedy("F.relu(x)") == ": x = F.relu(x)"
    assert remedy("net(x).detach()") == " to a variable, and use that from there on."
    assert remedy('torch.tanh(states.get("h"))') == " to a variable, and use that from there on."
    assert remedy("x.clamp(") == " to a variable, and use that from there on."
    of_loop = DroppedResult(name="f", called=line(3, "o.clamp(0)"), loop_variables=("o",), backward=line(7))
    assert "a list of o.clamp(0) for each o." in judged(of_loop).remedy
