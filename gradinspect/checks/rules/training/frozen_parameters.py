"""Frozen parameters that were meant to learn."""

from collections.abc import Callable, Iterator

from gradinspect.checks.facts.training import FrozenByAccident
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_count

FROZEN = Rule(
    code="GI379",
    title="frozen, and perhaps meant to learn",
    summary="Parameters do not require grad, though something in the program says that they should.",
    explanation="requires_grad belongs to the tensor. A copy of a frozen model is frozen too, and an optimizer takes "
    "its parameters without an error. A model that is frozen for one phase, as a discriminator is while the generator "
    "learns, stays so until requires_grad is set again. A loop that freezes all but the parameters of some name "
    "freezes everything if no parameter has that name. An optimizer also takes a plain tensor, such as torch.zeros(1), "
    "which requires no grad unless it is asked to, and Embedding.from_pretrained() freezes the embedding unless "
    "freeze=False is passed. A matrix of zeros that is frozen, as the second factor of an adapter, has no effect. What "
    "a program freezes and passes to an optimizer with the rest of the model is not reported.",
    change="""\
  import copy

  import torch
  from torch import nn

  teacher = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
  teacher.requires_grad_(False)
- student = copy.deepcopy(teacher)  # frozen, too
+ student = copy.deepcopy(teacher).requires_grad_(True)
  student[2] = nn.Linear(16, 2)
  optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
  for _ in range(2):
      x = torch.randn(5, 8)
      optimizer.zero_grad()
      (student(x) - teacher(x)).square().mean().backward()
      optimizer.step()
""",
    remedy="Set requires_grad where training begins, and list which parameters require grad.",
)


def _copy(fact: FrozenByAccident) -> tuple[str, str]:
    of = "of frozen ones" if fact.frozen is None else f"of what was frozen at {line_of(fact.frozen)}"
    return (
        f"{fact.optimizer} holds {listed(fact.names)}, but no step changes them. They do not require grad: they are "
        f"copies {of}.",
        f"If they should learn, call requires_grad_(True) on the copy of {line_of(fact.copied)}. If not, do not pass "
        f"them to {fact.optimizer} at {line_of(fact.created)}.",
    )


def _phase(fact: FrozenByAccident) -> tuple[str, str]:
    return (
        f"{listed(fact.names)} learned until {line_of(fact.frozen)}, which set requires_grad to False, and nothing has "
        f"set it again. {fact.optimizer} has stepped {format_count(fact.num_steps, 'time')} since, without a gradient.",
        _if_they_should(fact),
    )


def _never(fact: FrozenByAccident) -> tuple[str, str]:
    return (
        f"{fact.optimizer} has stepped {format_count(fact.num_steps, 'time')}, each without a gradient: it holds "
        f"{listed(fact.names)}, which {line_of(fact.frozen)} has frozen.",
        _if_they_should(fact),
    )


def _plain(fact: FrozenByAccident) -> tuple[str, str]:
    return (
        f"{fact.optimizer} holds {listed(fact.names)}, which does not require grad: backward computes no gradient for "
        "it, and no step has changed it.",
        f"If it should learn, call requires_grad_() on what {line_of(fact.made)} assigns. If not, do not pass it to "
        f"{fact.optimizer} at {line_of(fact.created)}.",
    )


def _default(fact: FrozenByAccident) -> tuple[str, str]:
    return (
        f"{fact.optimizer} has a group that no step changes, of {listed(fact.names)} alone: from_pretrained() at "
        f"{line_of(fact.frozen)} freezes what it makes, by default.",
        f"If that group should learn, pass freeze=False at {line_of(fact.frozen)}. If not, remove the group at "
        f"{line_of(fact.created)}.",
    )


def _if_they_should(fact: FrozenByAccident) -> str:
    return (
        f"Set requires_grad to True again before the forward pass that the step of {fact.optimizer} at "
        f"{line_of(fact.step)} belongs to. If they are to stay frozen, remove that step."
    )


def _filter(fact: FrozenByAccident) -> tuple[str, str]:
    return (
        f"{line_of(fact.frozen)} freezes {listed(fact.names)}, and spares what is called '{fact.asked}'. No parameter "
        "is called so.",
        f"Which parameters should learn? Ask for a part of their names at {line_of(fact.frozen)}, in place of "
        f"'{fact.asked}'.",
    )


def _zero(fact: FrozenByAccident) -> tuple[str, str]:
    zero = "which is" if len(fact.names) == 1 else "of which each is"
    return (
        f"{line_of(fact.frozen)} freezes {listed(fact.names)}, {zero} zero everywhere: what is multiplied by "
        "it stays zero, in every call, and nothing lets it learn.",
        f"If they should learn, as an adapter does, freeze the model before they are made, or set their requires_grad "
        f"to True after {line_of(fact.frozen)}.",
    )


_WORDS: dict[str, Callable[[FrozenByAccident], tuple[str, str]]] = {
    "copy": _copy, "phase": _phase, "never": _never, "filter": _filter, "plain": _plain, "default": _default,
    "zero": _zero,
}  # fmt: skip


def frozen_findings(fact: FrozenByAccident) -> Iterator[Finding]:
    """Report what is frozen."""
    why, remedy = _WORDS[fact.kind](fact)
    yield FROZEN.finding(
        text=why,
        places=(
            *place_of("frozen", fact.frozen, fact.called), *place_of("copied", fact.copied),
            *place_of("made", fact.made),
            *place_of("optimizer", fact.created), *place_of("step", fact.step),
        ),
        remedy=remedy,
        subjects=fact.names,
    )  # fmt: skip


JUDGE = Judge(FrozenByAccident, frozen_findings)
