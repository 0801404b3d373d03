"""Terms of a loss that carry no gradient, because they were detached on their way into it."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import ConstantTerm
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.flow.detach_causes import DETACH_REMEDIES

CONSTANT = Rule(
    code="GI306",
    title="a term of the loss carries no gradient",
    summary="Something that was detached is added to the loss, so it changes the number and no gradient.",
    explanation="A sum has a gradient if one of its terms has, so a term that lost its graph is not an error. "
    "Typical cases are a penalty on weights that reads p.data, torch.tensor() of a list of losses, float() or NumPy on "
    "the way, and a count of wrong predictions. The loss includes the term, and training ignores it. "
    "Terms of activations that went through no_grad() or detach() and no weight are not reported: they may "
    "be there to be logged.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  x, y = torch.randn(5, 8), torch.randint(4, (5,))
- penalty = sum(p.data.square().sum() for p in model.parameters())  # no graph
+ penalty = sum(p.square().sum() for p in model.parameters())
  loss = nn.functional.cross_entropy(model(x), y) + 0.01 * penalty
  loss.backward()
""",
    remedy="Compute the term from the tensors themselves.",
)


def constant_findings(term: ConstantTerm) -> Iterator[Finding]:
    """Say what detached a term that the program adds to a loss."""
    cause = DETACH_REMEDIES[term.cause]
    where, used = line_of(term.cut), line_of(term.used)
    remedy = cause.remedy.format(op=term.op, where=where, used=used)
    is_off = term.cause == "grad_off" and term.reduced is not None
    if is_off:
        remedy = (
            f"At {line_of(term.reduced)}, use the output of the trained model, computed with gradients enabled. "
            f"{where} disables them."
        )
    yield CONSTANT.finding(
        text=f"What {used} adds to the loss has no graph: {cause.why.format(op=term.op)} Backward treats it as a "
        "constant, so it changes no gradient.",
        places=(
            *place_of("detached", term.cut), *place_of("term", term.reduced if is_off else None),
            *place_of("used", term.used), *place_of("backward", term.backward),
        ),
        remedy=remedy,
    )  # fmt: skip


JUDGE = Judge(ConstantTerm, constant_findings)
