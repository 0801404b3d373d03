"""Targets that are noise which nothing else has read, where the input has noise of another draw.

NOTE [Noise on purpose]
A denoiser is to predict the noise that its input contains. Toy programs have targets that are random, too, and inputs
are often augmented by noise. So noise counts only if it weighs against data by a factor that is a tensor, as a schedule
of noise does, and if neither draw is read anywhere else.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.evidence.objectives.regressions import PRODUCTS, made_by, regressions
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read, ancestors

DRAWS = frozenset(("randn", "randn_like", "normal"))


class Unseen(NamedTuple):
    """A draw that is a target, and the call that mixed another one into the input."""

    mixed: int
    drawn: int
    used: int


def unseen_noise(calls: Sequence[Call], root: Read) -> Iterator[Unseen]:
    """Find the regressions on noise that the input does not contain. NOTE [Noise on purpose]."""
    for regression in regressions(calls, root):
        for target, prediction in regression.sides:
            drawn = None if target.is_live else _drawn(calls, target)
            if drawn is None or not prediction.leads_back:
                continue
            mixed = _mixed(calls, prediction, drawn)
            if mixed is not None and _readers(calls, drawn) <= ancestors(calls, regression.call):
                yield Unseen(mixed, drawn, regression.call)


def _drawn(calls: Sequence[Call], target: Read) -> int | None:
    """Return the draw that a target consists of, or that data is subtracted from or from which it is."""
    made = made_by(calls, target)
    parts = [made]
    if made != OUTSIDE and calls[made].name.strip("_") in ("sub", "rsub"):
        parts = [made_by(calls, read) for read in calls[made].reads]
    draws = [one for one in parts if one != OUTSIDE and calls[one].name in DRAWS]
    return draws[0] if len(draws) == 1 else None


def _mixed(calls: Sequence[Call], prediction: Read, drawn: int) -> int | None:
    """Find the call that added noise of another draw to the input, both weighed by tensors."""
    behind = ancestors(calls, prediction.call, stops_at_leaves=True)
    if drawn in behind:
        return None
    for number in behind:
        call = calls[number]
        if call.name.strip("_") not in ("add", "radd") or any(read.is_live for read in call.reads):
            continue
        weighed = [read.call for read in call.reads if _is_weighed(calls, read)]
        if len(weighed) == len(call.reads) == 2 and any(_has_own_draw(calls, one, number) for one in weighed):
            return number
    return None


def _is_weighed(calls: Sequence[Call], read: Read) -> bool:
    if read.call == OUTSIDE:
        return False
    return calls[read.call].name.strip("_") in PRODUCTS and len(calls[read.call].reads) == 2


def _has_own_draw(calls: Sequence[Call], product: int, total: int) -> bool:
    """Return whether a product has noise that nothing else has read."""
    draws = (read.call for read in calls[product].reads if read.call != OUTSIDE)
    return any(calls[one].name in DRAWS and _readers(calls, one) <= {product, total} for one in draws)


def _readers(calls: Sequence[Call], made: int) -> set[int]:
    """Collect the calls that read the values of what a call made: not those that ask for its shape."""
    return {
        number
        for number in range(made + 1, len(calls))
        if any(read.call == made for read in calls[number].reads) and not calls[number].name.endswith("_like")
    }
