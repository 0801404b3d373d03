"""What the calls behind a loss show of its targets, as facts for the rules."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.evidence.objectives.advantages import attached_advantages, chosen_targets
from gradinspect.checks.evidence.objectives.codebooks import unlearned_lookups
from gradinspect.checks.evidence.objectives.noise_targets import unseen_noise
from gradinspect.checks.evidence.objectives.reward_signs import rewarded_losses
from gradinspect.checks.evidence.targets.signs import maximizes
from gradinspect.checks.facts.objectives import (
    AttachedAdvantage,
    AttachedTarget,
    RewardMinimized,
    UnlearnedLookup,
    UnseenNoise,
)
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read
from gradinspect.graph import Frame
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.transparency.own_errors import PassOver

Lines = Callable[[int], Frame | None]


class LossContext(NamedTuple):
    """What is known of the program around the calls."""

    line: Lines  # that made a call
    caller: Lines  # that called the function in which a call was made
    is_held: Callable[[int], bool]  # whether an optimizer holds a leaf
    pass_over: PassOver  # counts what is not looked at
    has_integers: bool = True  # some call may have chosen by a value that could have a gradient


def objective_facts(calls: Sequence[Call], root: Read, known: LossContext, backward: Frame | None) -> Iterator[object]:
    """Yield what is wrong with what a loss is made of.

    Args:
        calls: In the order in which they were made.
        root: The loss.
        known: The lines, and what optimizers hold.
        backward: The line that calls backward.
    """
    if not root.leads_back or root.call == OUTSIDE:
        return
    line = known.line

    def code_of(number: int) -> str:
        made = line(number)
        return "" if made is None else made.code

    for advantage in attached_advantages(calls, root, code_of):
        yield AttachedAdvantage(
            subtracted=line(advantage.subtracted), scored=line(advantage.scored), used=line(advantage.used),
            backward=backward,
        )  # fmt: skip
    products = list(rewarded_losses(calls, root, code_of))
    for product in products if products and _is_minimized() else ():
        yield RewardMinimized(
            factor=product.factor, is_ratio=product.is_ratio, used=line(product.number), backward=backward
        )
    for target in chosen_targets(calls, root, known.is_held):
        yield AttachedTarget(
            op=calls[target.choice].name, made=line(target.target), used=line(target.used), backward=backward
        )
    for noise in unseen_noise(calls, root):
        mixed, drawn = line(noise.mixed), line(noise.drawn)
        is_elsewhere = mixed is not None and drawn is not None and mixed.function != drawn.function
        called = known.caller(noise.mixed) if is_elsewhere else None
        yield UnseenNoise(mixed=mixed, called=called, drawn=drawn, used=line(noise.used), backward=backward)
    for lookup in unlearned_lookups(calls, root, known.pass_over) if known.has_integers else ():
        yield UnlearnedLookup(
            op=calls[lookup.chosen].name, chosen=line(lookup.chosen), looked_up=line(lookup.looked_up),
            coded=None if lookup.coded == OUTSIDE else line(lookup.coded), compared=line(lookup.compared),
            used=line(lookup.used), backward=backward,
        )  # fmt: skip


def _is_minimized() -> bool:
    """Return whether there are optimizers, and all of them minimize; to find them takes 50 ms of each backward call."""
    optimizers = live_optimizers()
    return bool(optimizers) and not any(map(maximizes, optimizers))
