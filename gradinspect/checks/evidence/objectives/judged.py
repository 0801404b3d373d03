"""What the calls behind a loss show of its targets, as facts for the rules."""

from collections.abc import Callable, Iterator, Sequence

from gradinspect.checks.evidence.objectives.advantages import attached_advantages, chosen_targets
from gradinspect.checks.evidence.objectives.codebooks import unlearned_lookups
from gradinspect.checks.evidence.objectives.noise_targets import unseen_noise
from gradinspect.checks.facts.objectives import AttachedAdvantage, AttachedTarget, UnlearnedLookup, UnseenNoise
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read
from gradinspect.graph import Frame

Lines = Callable[[int], Frame | None]


def objective_facts(
    calls: Sequence[Call], root: Read, line: Lines, backward: Frame | None, is_held: Callable[[int], bool]
) -> Iterator[object]:
    """Yield what is wrong with what a loss is made of.

    Args:
        calls: In the order in which they were made.
        root: The loss.
        line: The line that made a call.
        backward: The line that calls backward.
        is_held: Whether an optimizer holds a leaf.
    """
    if not root.leads_back or root.call == OUTSIDE:
        return

    def code_of(number: int) -> str:
        made = line(number)
        return "" if made is None else made.code

    for advantage in attached_advantages(calls, root, code_of):
        yield AttachedAdvantage(
            subtracted=line(advantage.subtracted), scored=line(advantage.scored), used=line(advantage.used),
            backward=backward,
        )  # fmt: skip
    for target in chosen_targets(calls, root, is_held):
        yield AttachedTarget(
            op=calls[target.choice].name, made=line(target.target), used=line(target.used), backward=backward
        )
    for noise in unseen_noise(calls, root):
        yield UnseenNoise(mixed=line(noise.mixed), drawn=line(noise.drawn), used=line(noise.used), backward=backward)
    for lookup in unlearned_lookups(calls, root):
        yield UnlearnedLookup(
            op=calls[lookup.chosen].name, chosen=line(lookup.chosen), looked_up=line(lookup.looked_up),
            coded=None if lookup.coded == OUTSIDE else line(lookup.coded), compared=line(lookup.compared),
            used=line(lookup.used), backward=backward,
        )  # fmt: skip
