"""Views that were to move an axis, of anything but the scores of a loss: heads, images, sides that were flattened."""

from collections.abc import Iterator

from gradinspect.checks.facts.axes import FlattenedApart, MixedPixels, MovedByView
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge
from gradinspect.checks.rules.losses.scrambled_scores import SCRAMBLED
from gradinspect.units import format_shape

_REMEDIES = {
    "split": "split the last axis first, and then move the heads: x.view(*x.shape[:-1], {heads}, {features})"
    ".transpose(-3, -2), where x is what the view is taken of.",
    "merged": "move the heads back first: x.transpose(-3, -2).flatten(-2), where x is what the view is taken of.",
    "moved": "use {permuted}, which moves the elements.",
}


def moved_findings(fact: MovedByView) -> Iterator[Finding]:
    """Report a view that keeps the elements in their order."""
    where, before, after = line_of(fact.viewed), format_shape(fact.before), format_shape(fact.after)
    seen = f"in each of {fact.num_calls} calls" if fact.num_calls > 1 else "in its only call"
    heads, features = (fact.after[-3], fact.after[-1]) if len(fact.after) > 2 else (0, 0)
    yield SCRAMBLED.finding(
        text=f"{where} makes {after} of {before} by a view, {seen}. A view keeps the "
        "elements in their order and only counts them anew, so what stands along one axis of its result comes from "
        "several places of another.",
        places=place_of("viewed", fact.viewed),
        remedy=f"At {where}, "
        + _REMEDIES[fact.kind].format(heads=heads, features=features, permuted=_permuted(fact.before, fact.after)),
    )


def _permuted(before: tuple[int, ...], after: tuple[int, ...]) -> str:
    """Write the call that brings the axes into the other order; without numbers where two have one length."""
    if sorted(before) != sorted(after) or len(set(before)) < len(before):
        return "permute"
    return f"permute({', '.join(str(before.index(size)) for size in after)}) instead"


def flattened_findings(fact: FlattenedApart) -> Iterator[Finding]:
    """Report two sides of a loss whose elements are in different orders."""
    first, second = format_shape(fact.first), format_shape(fact.second)
    yield SCRAMBLED.finding(
        text=f"The scores were flattened from {first} and the targets from {second}, in each of {fact.num_calls} "
        "calls. A view keeps the elements in their order, so the scores of one place meet the target of another.",
        places=(
            *place_of("scores", None if fact.scores == fact.used else fact.scores),
            *place_of("targets", None if fact.targets in (fact.used, fact.scores) else fact.targets),
            *place_of("loss", fact.used),
        ),
        remedy="Bring both into one order before they are flattened: transpose(0, 1) of the scores or of the targets "
        f"makes {second} of {first}, or the reverse.",
    )


def mixed_findings(fact: MixedPixels) -> Iterator[Finding]:
    """Report images whose values are in another order than their shape says."""
    channels, rows, columns = fact.shape
    at = "" if fact.viewed is None else f", at {line_of(fact.viewed)}"
    yield SCRAMBLED.finding(
        text=f"The images that {line_of(fact.used)} gives a convolution are {format_shape(fact.shape)}, but their "
        f"values lie as those of {format_shape((rows, columns, channels))} do: in each of {fact.num_calls} calls, "
        f"values that are {channels} places apart are more alike than neighbors, along the rows and down the columns.",
        places=(*place_of("viewed", fact.viewed), *place_of("convolved", fact.used)),
        remedy=f"Move the channels where the images get this shape{at}: by transpose(2, 0, 1) of an array, or "
        "permute(2, 0, 1) of a tensor. reshape and view leave each value where it is.",
    )


MOVED = Judge(MovedByView, moved_findings)
FLATTENED = Judge(FlattenedApart, flattened_findings)
MIXED = Judge(MixedPixels, mixed_findings)
