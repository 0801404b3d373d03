"""What a step of a compiled program computes otherwise than in eager: the verdict of `check --compiled`."""

from collections.abc import Iterator
from math import isinf
from typing import Final

from gradinspect.analyses.diff.compiled import CompiledDiff, CompiledValueDiff, Role, region_words
from gradinspect.checks.findings import BACKWARD, Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_count

OTHER_GRADIENTS = Rule(
    code="GI251",
    title="compiled code computes other gradients than eager",
    summary="The losses are those of eager, but gradients are off by more than rounding, or missing; or eager fails.",
    explanation="The program runs in eager and under torch.compile, with the same random numbers, and the first step "
    "of both is compared. How far rounding alone moves each value is measured in more eager runs, in which each "
    "operator rounds otherwise. Training goes on without an error, in another direction. Either the program does "
    "something else while it is compiled, or torch.compile or its backend has a defect: the first of its stages that "
    "differs is named, and, if it is the backend, the first wrong operator. gradinspect diff --compiled shows more. A "
    "program that fails in eager and goes on compiled, as where it writes into what backward needs, is reported too.",
    change="""\
  import torch
  from torch import nn


  class Clip(nn.Module):
      def forward(self, x):
-         if torch.compiler.is_compiling():  # another gradient
-             return x + (x.clamp(-0.1, 0.1) - x).detach()
          return x.clamp(-0.1, 0.1)


  model = nn.Sequential(nn.Linear(4, 8), Clip(), nn.Linear(8, 1))
  model = torch.compile(model, backend="aot_eager")
  model(torch.randn(16, 4)).square().mean().backward()
""",
    remedy="Let the part that is named run in eager, in a function decorated with @torch.compiler.disable.",
    command="gradinspect check --compiled",
)
OTHER_VALUES = Rule(
    code="GI252",
    title="compiled code computes other values than eager",
    summary="A loss, or a buffer or other tensor that forward writes, is off by more than rounding, or missing; or a "
    "view is none.",
    explanation="The program runs in eager and under torch.compile, with the same random numbers, and the first step "
    "of both is compared; dropout is made equal. A loss that differs makes gradients differ too. A buffer that "
    "differs, such as a running mean, shows in eval mode only, or a counter never. A result that in eager shares "
    "memory with an input, parameter or buffer, or does not, must do so compiled: a later write shows in it.",
    change="""\
  import torch
  from torch import nn


  class Gate(nn.Module):
      def forward(self, x):
-         if torch.compiler.is_compiling():  # faster, and another function
-             return x * torch.sigmoid(1.7 * x)
          return nn.functional.gelu(x)


  model = nn.Sequential(nn.Linear(4, 8), Gate(), nn.Linear(8, 1))
  model = torch.compile(model, backend="aot_eager")
  model(torch.randn(16, 4)).square().mean().backward()
""",
    remedy="Let the part that is named run in eager, in a function decorated with @torch.compiler.disable.",
    command="gradinspect check --compiled",
)


def compiled_findings(diff: CompiledDiff) -> Iterator[Finding]:
    """Report what differs, as one mistake: what forward computes, or else the gradients."""
    if diff.is_same:
        return
    forward = [name for role in _WORDS if role != "gradient" for name in _names(diff, role)]
    rule = OTHER_VALUES if forward else OTHER_GRADIENTS
    subjects = (*forward, *_names(diff, "gradient"))
    frame = None if diff.operator is None else diff.operator.frame
    first = min((one.value.call for one in diff.differences), default=0)
    calls = [call.frame for call in diff.calls[first : first + 1]]
    text = _failure(diff) if diff.eager_failure else " ".join((_what(diff), *_where(diff), *_who(diff)))
    yield rule.finding(
        text=text,
        places=(
            *(place for call in calls for place in place_of(BACKWARD, call)),
            *(place for region in diff.regions for place in place_of("compiled", region.frame)),
            *place_of("operator", frame),
        ),
        remedy=_remedy(diff),
        subjects=subjects,
    )


_WORDS: Final[dict[Role, str]] = {
    "loss": "the loss", "buffer": "the buffer", "tensor": "the tensor", "memory": "the memory of",
    "gradient": "the gradient of",
}  # fmt: skip
# That each operator is right alone does not say which of these it is.
_TOGETHER: Final = ", where the backend fuses operators, puts them in another order or loses a write"
JUDGE = Judge(CompiledDiff, compiled_findings)


def _names(diff: CompiledDiff, role: Role) -> list[str]:
    differing = [one.value.name for one in diff.differences if one.value.role == role]
    return list(dict.fromkeys((*differing, *(one.name for one in diff.one_sided if one.role == role))))


def _failure(diff: CompiledDiff) -> str:
    part = diff.part or "the backend itself"
    right = f"It fails with {listed(diff.right)} too. " if diff.right else ""
    return (
        f"In eager: {diff.eager_failure} Under torch.compile the program goes on, with values that nobody compared. "
        f"{right}It goes on with {diff.stage}, {part}. gradinspect check --eager looks for the mistake."
    )


def _what(diff: CompiledDiff) -> str:
    parts = []
    for role, words in _WORDS.items():
        some = [one for one in diff.differences if one.value.role == role]
        if some:
            worst = max(some, key=lambda one: one.value.relative)
            more = f", and {format_count(len(some) - 1, 'other')}" if len(some) > 1 else ""
            name = words if worst.value.name.partition(" ")[0] == role else f"{words} {worst.value.name}"
            parts.append(f"{name} is {_off(worst)}{more}")
    parts += [f"the {one.words}" for one in diff.one_sided[:3]]
    if diff.num_eager_calls != len(diff.calls):
        calls = format_count(len(diff.calls), "backward call")
        parts.append(f"it makes {calls}, in eager {diff.num_eager_calls:,}")
    return f"Under torch.compile {'; '.join(parts)}."


def _off(one: CompiledValueDiff) -> str:
    """Say how far a value is off; one that is 0 in eager has no norm to compare with."""
    if not one.value.num_odd and isinf(one.value.relative):
        return "0 in eager only"
    off = "NaN or Inf" if one.value.num_odd else f"off by {one.value.relative:.1e} of its norm"
    return f"{off} where rounding makes {one.rounding:.1e}"


def _where(diff: CompiledDiff) -> Iterator[str]:
    found = diff.operator
    if found is not None and found.is_drawn_again:
        yield f"Random numbers are drawn again by {found.words}, which gets others than forward had."
    elif found is not None and found.num_results > 1:
        results = f"{found.num_results:,} wrong results, the worst off by {found.error:.1e}"
        yield f"Of {results}, the last operator that all come from is {found.words}{_TOGETHER}."
    elif found is not None:
        what, where = ("result", _TOGETHER) if found.is_fused else ("operator", "")
        yield f"The first wrong {what} is {found.words}, off by {found.error:.1e}{where}."


def _who(diff: CompiledDiff) -> Iterator[str]:
    if diff.stage:
        part = diff.part or "the backend itself"
        right = f"; it is right with {listed(diff.right)}" if diff.right else ""
        yield f"It goes wrong in {diff.stage}, {part}{right}."
    region = region_words(diff)
    if region:
        yield region
    if diff.operator is None:
        yield "The line in it is not known." if diff.regions else "The line is not known."


def _remedy(diff: CompiledDiff) -> str:
    if diff.eager_failure:
        return ""  # what eager refuses is a mistake of another kind: `_failure` says where to look
    found = diff.operator
    if found is not None and found.frame is not None and not found.is_drawn_again:
        return (
            f"Move {line_of(found.frame)} into a function decorated with @torch.compiler.disable, and report "
            f"the operator to the maintainers of {diff.stage}."
        )
    if diff.right:
        return f"Compile with backend='{diff.right[-1]}', and report the program to the maintainers of {diff.stage}."
    return (
        "What does the program do otherwise while it is compiled: does it ask torch.compiler.is_compiling(), or read a "
        "value that Python changes meanwhile?"
    )
