"""Custom autograd.Functions whose derivative was checked against differences of their forward: the verdict in words."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.graph import Frame, Record

Verdict: TypeAlias = Literal["right", "wrong", "wrong twice", "unchecked"]


class Slope(Record, frozen=True, kw_only=True):
    """The derivative in one direction, by differences and by the Function's own backward."""

    argument: str  # of forward
    measured: float
    claimed: float

    @property
    def is_wrong(self) -> bool:
        """Whether the two differ by more than differences can be trusted."""
        return not abs(self.measured - self.claimed) <= 1e-4 + 1e-2 * abs(self.measured)


class CheckedFunction(Record, frozen=True, kw_only=True):
    """What gradcheck said of one custom Function."""

    name: str  # "LeakyClamp"
    verdict: Verdict
    reason: str = ""  # why it was not checked, or what torch said
    slopes: tuple[Slope, ...] = ()
    applied: Frame | None = None
    defined: Frame | None = None  # its backward


def derivative_findings(functions: Sequence[CheckedFunction]) -> Iterator[Finding]:
    """Make a finding of each Function that is wrong, or cannot be derived twice."""
    for function in functions:
        if function.verdict not in ("wrong", "wrong twice"):
            continue
        is_first = function.verdict == "wrong"
        yield Finding(
            code="GI201" if is_first else "GI202",
            title=f"the {'backward' if is_first else 'double backward'} of a custom Function is wrong",
            text=_wrong(function) if is_first else _wrong_twice(function),
            places=(*place_of("applied", function.applied), *place_of("defined", function.defined)),
            remedy=_remedy(function, is_first=is_first),
            subjects=(function.name,),
        )


def unchecked_notes(functions: Sequence[CheckedFunction]) -> tuple[str, ...]:
    """Say which Functions could not be checked, and why."""
    return tuple(
        f"{function.name} was not checked: {function.reason}."
        for function in functions
        if function.verdict == "unchecked"
    )


def _wrong(function: CheckedFunction) -> str:
    parts = [
        f"{slope.argument}: measured {slope.measured:.4g}, backward says {slope.claimed:.4g}"
        for slope in function.slopes
        if slope.is_wrong
    ]
    detail = f" Slopes in a random direction: {'; '.join(parts)}." if parts else f" {function.reason}"
    return f"{function.name}.backward is not the derivative of its forward, in double precision.{detail}"


def _wrong_twice(function: CheckedFunction) -> str:
    return (
        f"{function.name}.backward is right, but its own derivative is not: second-order gradients through it, as in "
        f"a gradient penalty, will be wrong or fail. {function.reason}".rstrip()
    )


def _remedy(function: CheckedFunction, *, is_first: bool) -> str:
    where = line_of(function.defined)
    if is_first:
        wrong = [slope.argument for slope in function.slopes if slope.is_wrong]
        what = f"the gradient of {', '.join(wrong)}" if wrong else "each formula"
        return f"Correct {what} at {where}. If it is a gradient of your own choice, leave it out with --skip GI201."
    return (
        f"At {where}, compute with torch operators on tensors from ctx.saved_tensors that were inputs or outputs; or "
        "mark backward as once_differentiable, so that nobody derives it twice by mistake."
    )
