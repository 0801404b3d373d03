"""Divergences of a code from its prior, as a loss of a variational autoencoder adds them to an error.

NOTE [What a code can win]
A code is worth what it takes off the error. That is never negative, and without the code it is about as large as in
the first steps. So at the best weights the divergence, times its weight, is no larger than the error was then. Where
the error is a mean over all elements it is often below one, and the divergence of an example, a sum over its code, is
below one nat with it: next to nothing can be read from such a code, and a decoder learns to do without. The weight is
that of one example against the mean: a sum over the batch that is divided by its rows has the weight one.

A divergence of two normal distributions is known by what it is made of: an exponential whose argument is also added,
or a logarithm and two squares. What it is computed from must lie behind the error too, with a draw in between.
"""

from collections.abc import Sequence

from gradinspect.checks.evidence.objectives.noise_targets import DRAWS
from gradinspect.checks.evidence.objectives.regressions import ADDS
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read, ancestors

MOST_NATS = 1.0  # of a code that is next to nothing
LEAST_ELEMENTS = 16  # of an example, over which an error is averaged
HALF = 0.5  # by which a divergence of normal distributions multiplies its sum
_MOST_CALLS = 60  # of an expression
_PRODUCTS = frozenset(("mul", "multiply", "rmul", "imul"))
_SQUARES = frozenset(("pow", "square"))
_ELEMENTWISE = (
    frozenset(("exp", "log", "neg", "sum", "div", "true_divide", "truediv", "rpow")) | _PRODUCTS | ADDS | _SQUARES
)


def is_divergence_of_code(calls: Sequence[Call], summed: int, error: int) -> bool:
    """Return whether one term is the divergence of a code that another one was decoded from.

    Args:
        calls: In the order in which they were made.
        summed: The call that reduces the divergence.
        error: The call that reduces the error.
    """
    expression, makers = _expression(calls, summed)
    if not makers or not _is_divergence(calls, expression):
        return False
    behind, own = ancestors(calls, error), ancestors(calls, summed)
    return makers <= behind and any(calls[one].name.strip("_") in DRAWS for one in behind - own)


def _expression(calls: Sequence[Call], reduced: int) -> tuple[list[int], set[int]]:
    """Return the calls that work on each element for itself, back from a reduction, and those that made what they take.

    Both are empty for one that is too long.
    """
    found: list[int] = []
    makers: set[int] = set()
    todo, seen = [*calls[reduced].reads], set[int]()
    while todo:
        read = todo.pop()
        if not read.leads_back or read.call in seen or read.call == OUTSIDE:
            continue
        seen.add(read.call)
        if calls[read.call].name.strip("_") not in _ELEMENTWISE:
            makers.add(read.call)
            continue
        found.append(read.call)
        if len(found) > _MOST_CALLS:
            return [], set()
        todo += calls[read.call].reads
    return found, makers


def _is_divergence(calls: Sequence[Call], expression: Sequence[int]) -> bool:
    names = [calls[one].name.strip("_") for one in expression]
    added = {
        _made(read) for one, name in zip(expression, names, strict=True) if name in ADDS for read in calls[one].reads
    }
    num_squares = sum(_is_square(calls[one]) for one in expression)
    exponents = {_made(calls[one].reads[0]) for one, name in zip(expression, names, strict=True) if name == "exp"}
    return bool(num_squares and exponents & added - {OUTSIDE}) or ("log" in names and num_squares > 1)


def _is_square(call: Call) -> bool:
    name = call.name.strip("_")
    is_of_itself = name in _PRODUCTS and len(call.reads) > 1 and len({_made(read) for read in call.reads}) == 1
    return name in _SQUARES or is_of_itself


def _made(read: Read) -> int:
    return read.call if read.leads_back else OUTSIDE
