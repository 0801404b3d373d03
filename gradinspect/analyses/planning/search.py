"""Search for the cheapest plan that fits. Each plan that is tried is run; nothing is estimated.

What comes in: the modules that ran, and a function that measures a plan. What goes out: plans that fit, the cheapest
first, and the one that needs least.

NOTE [Which modules of a repeated block]
Equal modules hold equal bytes, so only their number matters, but for what is computed again: its memory comes on top of
what all modules that are not checkpointed hold, and backward begins with the last one. So the first ones are taken.
More checkpointed modules never need more memory until the peak lies elsewhere; so the smallest number that fits is
looked for where it would be if each module held the same, and each number that is looked at is measured.

NOTE [When the time is over]
A search may end before all plans are tried that it would try. What was found by then is reported, and that there was
more to try; the plan that is reported first is run from the start all the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import TypeAlias

from gradinspect.analyses.memory.step import AliveRow, Origin, StorageKind
from gradinspect.analyses.planning.blocks import Block, blocks_of
from gradinspect.analyses.planning.changes import (
    Autocast,
    Change,
    Checkpoint,
    CheckpointSegments,
    DeleteVariable,
    HalfSaves,
    ModuleChange,
    ModuleUse,
    Offload,
    Plan,
    module_changes_of,
    rounding_of,
)
from gradinspect.analyses.planning.fewest import Fewest
from gradinspect.analyses.planning.segments import FlatSequence, sequences_of
from gradinspect.analyses.structure.call_names import OUTERMOST
from gradinspect.analyses.structure.name_folding import pattern_of
from gradinspect.graph import Record

_NOT_PUT_BACK = "which a checkpoint does not put back"
_RECOMPUTED = "CheckpointError"  # of torch.utils.checkpoint: not the same tensors were made again
_IN_COMPILED = "inside of what torch.compile compiles: hooks of saved tensors break its graphs."
_CACHE = (
    " The modules did not make the same tensors when they ran again: something outside of them had changed, such as "
    "a cache of keys and values, which use_cache=False leaves out."
)


class PlanOutcome(Record, frozen=True):
    """What a plan does to the memory and the work of a step."""

    plan: Plan
    peak_bytes: int = 0
    backward_bytes: int = 0  # alive as backward begins
    flops: int = 0
    moved_bytes: int = 0  # to the CPU and back, in one step
    at: Origin | None = None  # the moment of the peak
    model_name: str = OUTERMOST  # the program's variable with its model
    alive: Mapping[StorageKind, int] = {}  # what is there at that moment
    largest: AliveRow | None = None  # of it: the largest that one operator has made in the step
    failure: str = ""  # why it cannot be done
    on: str = ""  # the device whose peak it is: the fullest accelerator, or "cpu"
    only_last_step: bool = False  # it was made in that step alone, after steps of another plan


class FoundPlans(Record, frozen=True):
    """What was found."""

    limit: int
    plain: PlanOutcome
    fitting: tuple[PlanOutcome, ...]  # the cheapest first, each better than those before it; empty: nothing fits
    lowest: PlanOutcome
    num_runs: int
    tried: tuple[str, ...] = ()  # kinds of changes, in the order in which they were tried
    refused: tuple[str, ...] = ()  # why changes could not be made
    is_cut: bool = False  # the time was over before all was tried
    front: tuple[PlanOutcome, ...] = ()  # of all that were tried: what each work can do, the cheapest first


_Way: TypeAlias = Callable[[Block, Sequence[str]], ModuleChange]


class TimeIsOver(Exception):  # noqa: N818  # nothing went wrong
    """Raised instead of a measurement. NOTE [When the time is over]."""


class PlanSearch:
    """Looks for plans, and measures each of them once."""

    def __init__(
        self, limit: int, uses: Sequence[ModuleUse], kept: tuple[str, ...], measure: Callable[[Plan], PlanOutcome],
        *, rounds: bool = False, offloads: bool = False,
    ) -> None:  # fmt: skip
        """Set up.

        Args:
            limit: Bytes that the peak may have.
            uses: The modules, of which some may be checkpointed.
            kept: Expensive operators, whose results can be held instead of being computed again.
            measure: Runs a plan, or raises `TimeIsOver`.
            rounds: Whether gradients may be rounded otherwise even if a plan fits without.
            offloads: Whether what is saved can be moved to the CPU: the program has a device of its own.
        """
        self._limit = limit
        self._blocks = blocks_of(uses)
        self._kept = kept
        self._sequences = sequences_of(uses)
        self._measure = measure
        self._outcomes: dict[Plan, PlanOutcome] = {}
        self._rounds = rounds
        self._offloads = offloads
        self._run_whole = measure
        self._always: tuple[Change, ...] = ()
        self._spare: list[Change] = []  # what costs nothing and does not help, unless other changes are made too
        self._refused: list[str] = []

    def run(
        self,
        plain: PlanOutcome,
        offers: Sequence[Change],
        rounding: Sequence[Sequence[Change]] = (),
        run_whole: Callable[[Plan], PlanOutcome] | None = None,
        first: Sequence[Change] = (),
    ) -> FoundPlans:
        """Search, starting from the plain program.

        Args:
            plain: What the program needs as it is.
            offers: What can be changed at no cost.
            rounding: Changes after which gradients are rounded otherwise, made if nothing else fits: one of each group.
            run_whole: Runs from the start a plan that was made in the last step only; None: none is.
            first: What promises most, tried before all else: the time may be over soon. Empty: nothing does.
        """
        self._run_whole = run_whole or self._measure
        self._outcomes[plain.plan] = plain
        is_cut = True
        with suppress(TimeIsOver):
            self._run(Plan(changes=tuple(first)))
            self._try_all(offers, rounding)
            is_cut = False
        self._confirm()
        return FoundPlans(
            limit=self._limit,
            plain=plain,
            fitting=front_of(filter(self._fits, self._done())),
            front=front_of(self._done()),
            lowest=self._lowest(),
            num_runs=len(self._outcomes),
            tried=tuple(dict.fromkeys(change.kind_name for plan in self._outcomes for change in plan.changes)),
            refused=tuple(
                dict.fromkeys((*self._refused, *failed_checkpoints(self._outcomes), *self._unrepeatable(plain)))
            ),
            is_cut=is_cut,
        )

    def _try_all(self, offers: Sequence[Change], rounding: Sequence[Sequence[Change]]) -> None:
        self._accept(offers)
        self._try_modules()
        if self._offloads:
            self._try_saves(Offload)
        exact = self._always
        if self._rounds or not self._has_fitting():
            self._round(rounding)
        if self._has_fitting():
            self._always = exact
        if self._rounds or not self._has_fitting():
            self._try_saves(HalfSaves)
            self._try_way(partial(Block.changed, kind=Autocast), self._blocks)
            self._try_autocast_besides()
        self._drop_what_is_not_needed()

    def _confirm(self) -> None:
        """Run from the start what is reported first: the cheapest plan that fits, or the one that needs least."""
        while True:
            first = self._first()
            if not first.only_last_step:
                return
            self._outcomes[first.plan] = self._run_whole(first.plan)

    def _first(self) -> PlanOutcome:
        """Return what is reported first: the cheapest plan that fits, or the one that needs least."""
        return min(filter(self._fits, self._done()), key=_cost, default=self._lowest())

    def _lowest(self) -> PlanOutcome:
        return min(self._done(), key=lambda outcome: (outcome.peak_bytes, _cost(outcome)))

    def _try_modules(self) -> None:
        """Checkpoint modules, if the changes that every plan has are not enough; then what costs nothing may help."""
        self._checkpoint()
        for offer in self._spare:
            if self._has_fitting():
                return
            if offer not in self._always and self._helps(self._always, offer):
                self._always = (*self._always, offer)
                self._checkpoint()

    def _checkpoint(self) -> None:
        if not self._fits(self._of()):
            self._try_blocks()
            segments = [self._try_segments(sequence) for sequence in self._sequences]
            if not self._has_fitting():
                self._combine(Block.checkpointed, self._repeatable(), segments)

    def _try_saves(self, kind: type[Offload | HalfSaves]) -> None:
        """Hold what modules save in another way, but not in compiled code: hooks of saved tensors break its graphs."""
        outside = [block for block in self._blocks if not block.is_compiled]
        self._try_way(partial(Block.changed, kind=kind), outside)
        if self._blocks and not outside and not self._has_fitting():
            self._refused.append(f"Not possible: {kind.kind_name} {_IN_COMPILED}")

    def _try_way(self, way: _Way, blocks: Sequence[Block]) -> None:
        """Change modules in one way: each block by itself, then blocks together; as little as fits."""
        if self._fits(self._of()):
            return
        fitting = [block for block in self._reaching(blocks) if self._fits(self._of(way(block, block.paths)))]
        for block in fitting:
            self._fewest(block, partial(way, block))
        if not fitting:
            self._combine(way, blocks)

    def _try_autocast_besides(self) -> None:
        """Run modules under autocast besides what the lowest peak without it was reached with, such as checkpoints."""
        if self._has_fitting():
            return
        exact = [outcome for outcome in self._done() if rounding_of(outcome.plan) < HalfSaves.rounding]
        lowest = min(exact, key=lambda outcome: (outcome.peak_bytes, _cost(outcome)))
        always, self._always = self._always, lowest.plan.changes
        if module_changes_of(lowest.plan):
            self._try_way(partial(Block.changed, kind=Autocast), self._blocks)
        self._always = always

    def _round(self, groups: Sequence[Sequence[Change]]) -> None:
        """Make changes after which gradients are rounded otherwise, until something fits; one of each group."""
        for group in groups:
            others = self._always
            for change in group:
                if not self._helps(others, change):
                    break
                self._always = (*others, change)
                self._try_modules()
                if any(self._fits(one) for one in self._done() if change in one.plan.changes):
                    return

    def _helps(self, others: tuple[Change, ...], change: Change) -> bool:
        """Return whether the lowest peak is lower with a change."""
        lowest = self._lowest()
        outcome = self._run(Plan(changes=(*others, change, *module_changes_of(lowest.plan))))
        if outcome.failure:
            self._refused.append(outcome.failure)
        return not outcome.failure and outcome.peak_bytes < lowest.peak_bytes

    def _accept(self, offers: Sequence[Change]) -> None:
        """Make each change that costs nothing part of every plan, until one fits, if the peak is lower with it."""
        together = [*_together(offers)]
        while together and not self._fits(self._of()):
            before, group = self._of(), together.pop(0)
            outcome = self._of(*group)
            if not outcome.failure and outcome.peak_bytes < before.peak_bytes:
                self._always = (*self._always, *group)
            elif len(group) > 1:
                together[:0] = [(offer,) for offer in group]
            elif not outcome.failure:
                self._spare.extend(group)

    def _unrepeatable(self, plain: PlanOutcome) -> Iterator[str]:
        """Say which blocks were not checkpointed, and why: the outermost ones, if anything had to be tried."""
        if self._fits(plain):
            return
        named: list[ModuleChange] = []
        for block in self._blocks:
            change = block.checkpointed(block.paths)
            if block.unrepeatable and not any(_overlaps(change, other) for other in named):
                named.append(change)
                yield f"Not possible: {change.describe('x')}. Its forward {block.unrepeatable}, {_NOT_PUT_BACK}."

    def _repeatable(self) -> list[Block]:
        """List the blocks that can be computed again, as far as that is known."""
        failed = {
            change
            for plan, outcome in self._outcomes.items()
            if outcome.failure and len(changes := module_changes_of(plan)) == 1
            for change in changes
        }
        return [
            block for block in self._blocks if not block.unrepeatable and block.checkpointed(block.paths) not in failed
        ]

    def _try_blocks(self) -> None:
        """Checkpoint each block by itself, as a whole, then as little of it as fits."""
        for block in self._reaching(self._repeatable()):
            if not self._fits(self._of(block.checkpointed(block.paths))):
                continue  # what is kept would only come on top
            keeping = self._of(block.checkpointed(block.paths, self._kept)) if self._kept else None
            fits_kept = keeping is not None and self._fits(keeping)
            if fits_kept:
                self._fewest(block, partial(block.checkpointed, kept=self._kept))
            self._fewest(block, block.checkpointed)
            if keeping is not None and not fits_kept and keeping.peak_bytes < self._of().peak_bytes:
                self._fewest(block, block.checkpointed, rest=partial(block.checkpointed, kept=self._kept))

    def _reaching(self, blocks: Iterable[Block]) -> list[Block]:
        """List the blocks that hold as much as there is too much: what a block does not hold, it cannot free."""
        excess = self._of().peak_bytes - self._limit
        return [block for block in blocks if block.saved_bytes >= excess]

    def _fewest(
        self,
        block: Block,
        changed: Callable[[Sequence[str]], ModuleChange],
        *others: Change,
        rest: Callable[[Sequence[str]], ModuleChange] | None = None,
    ) -> None:
        """Find the smallest number of modules that fits, first where it would be if all of them held the same.

        NOTE [Which modules of a repeated block].

        Args:
            block: All of its modules together fit.
            changed: Changes some of them.
            others: What is changed besides.
            rest: Changes the other modules of the block; None: they are left.
        """

        def tried(number: int) -> PlanOutcome:
            changes = [*others]
            changes += [changed(block.paths[:number])] if number else []
            changes += [rest(block.paths[number:])] if rest is not None and number < len(block.paths) else []
            return self._of(*changes)

        fewest = Fewest(len(block.paths), self._limit, tried(0).peak_bytes, tried(len(block.paths)).peak_bytes)
        while (number := fewest.next) is not None:
            outcome = tried(number)
            fewest.note(number, outcome.peak_bytes, fits=self._fits(outcome))

    def _try_segments(self, sequence: FlatSequence) -> CheckpointSegments:
        """Return the fewest segments that fit, or those that need least."""
        most, best = sequence.most_segments, 2
        number = 4
        while not self._fits(self._segments(sequence, best)) and number <= most:
            if self._segments(sequence, number).peak_bytes >= self._segments(sequence, best).peak_bytes:
                break
            best, number = number, 2 * number
        step = best // 4
        while step:
            best = min(
                (near for near in (best - step, best, best + step) if 2 <= near <= most),
                key=lambda near: self._order_of(self._segments(sequence, near)),
            )
            step //= 2
        return sequence.in_segments(best)

    def _segments(self, sequence: FlatSequence, number: int) -> PlanOutcome:
        return self._of(sequence.in_segments(number))

    def _order_of(self, outcome: PlanOutcome) -> tuple[bool, int, int]:
        """Order outcomes: what fits by its work, then what does not by its peak."""
        fits = self._fits(outcome)
        return bool(outcome.failure), 0 if fits else outcome.peak_bytes, outcome.flops

    def _combine(self, way: _Way, blocks: Sequence[Block], others: Sequence[ModuleChange] = ()) -> None:
        """Change one block after the other, or something else, the most helpful first, until it fits."""
        whole = [*(way(block, block.paths) for block in blocks), *others]
        inner = {number for number, change in enumerate(whole) if _is_inside_one(change, whole[:number])}
        outer = [number for number in range(len(whole)) if number not in inner]
        order = [*sorted(outer, key=lambda number: self._of(whole[number]).peak_bytes), *sorted(inner)]
        taken: list[ModuleChange] = []
        best = self._of()
        for number in order:
            if any(_overlaps(whole[number], change) for change in taken):
                continue
            outcome = self._of(*taken, whole[number])
            if outcome.failure or outcome.peak_bytes >= best.peak_bytes:
                continue
            if self._fits(outcome):
                if number < len(blocks):
                    self._fewest(blocks[number], partial(way, blocks[number]), *taken)
                return
            taken.append(whole[number])
            best = outcome

    def _drop_what_is_not_needed(self) -> None:
        """Measure the best plan without each of the changes that every plan has."""
        for offer in reversed(self._always):
            changes = self._first().plan.changes
            if offer in changes:
                self._run(Plan(changes=tuple(change for change in changes if change != offer)))

    def _of(self, *changes: Change) -> PlanOutcome:
        return self._run(Plan(changes=(*self._always, *changes)))

    def _run(self, plan: Plan) -> PlanOutcome:
        if plan not in self._outcomes:
            self._outcomes[plan] = self._measure(plan)
        return self._outcomes[plan]

    def _has_fitting(self) -> bool:
        return any(map(self._fits, self._done()))

    def _done(self) -> Iterator[PlanOutcome]:
        return (outcome for outcome in self._outcomes.values() if not outcome.failure)

    def _fits(self, outcome: PlanOutcome) -> bool:
        return not outcome.failure and outcome.peak_bytes <= self._limit


def failed_checkpoints(outcomes: Mapping[Plan, PlanOutcome]) -> list[str]:
    """Say which modules could not be checkpointed, and why: once for each block, of which most were tried."""
    found: dict[tuple[str, str], tuple[Checkpoint | CheckpointSegments, str]] = {}
    for plan, outcome in outcomes.items():
        changes = [change for change in plan.changes if isinstance(change, Checkpoint | CheckpointSegments)]
        rest = Plan(changes=tuple(change for change in plan.changes if change not in changes))
        if not outcome.failure or len(changes) != 1 or rest not in outcomes or outcomes[rest].failure:
            continue  # something else may have failed
        change = changes[0]
        block = change.class_name, pattern_of(change.paths[0])
        if block not in found or len(change.paths) > len(found[block][0].paths):
            found[block] = change, outcome.failure
    return [
        f"Not possible: {change.describe('x')}. {failure}{_CACHE if _RECOMPUTED in failure else ''}"
        for change, failure in found.values()
    ]


def _together(offers: Iterable[Change]) -> Iterator[tuple[Change, ...]]:
    """Yield changes one by one, but deletions that follow each other as one: each needs a run from the start."""
    for is_deletion, group in groupby(offers, lambda offer: isinstance(offer, DeleteVariable)):
        changes = tuple(group)
        yield from [changes] if is_deletion else ((change,) for change in changes)


def front_of(outcomes: Iterable[PlanOutcome]) -> tuple[PlanOutcome, ...]:
    """Leave out what needs no less than a cheaper plan: the Pareto front of peak, work, moves and rounding.

    Not all work is counted: of plans with the same FLOPs, the one with fewer changes is the cheaper one.
    """
    found: list[PlanOutcome] = []
    for outcome in sorted(outcomes, key=_cost):
        if not any(_is_as_good(better, outcome) for better in found):
            found.append(outcome)
    return tuple(found)


def _is_as_good(one: PlanOutcome, other: PlanOutcome) -> bool:
    """Return whether a plan costs no more than another, and needs no more."""
    return (
        rounding_of(one.plan) <= rounding_of(other.plan)
        and (one.flops, one.plan.num_changes) <= (other.flops, other.plan.num_changes)
        and one.moved_bytes <= other.moved_bytes
        and one.peak_bytes <= other.peak_bytes
    )


def _cost(outcome: PlanOutcome) -> tuple[int, bool, int, int, int, int]:
    """Order plans: those that keep every bit first, then those that move nothing, then by work, and by what changes.

    What a byte that is moved costs beside an operation, only a run on the device would show.
    """
    return (
        rounding_of(outcome.plan),
        outcome.moved_bytes > 0,
        outcome.flops,
        outcome.plan.num_changes,
        outcome.moved_bytes,
        outcome.peak_bytes,
    )


def _is_inside_one(change: ModuleChange, larger: Sequence[ModuleChange]) -> bool:
    """Return whether a block is inside a repeated one, which holds more, and frees it when it is changed."""
    return any(len(other.paths) > 1 and _overlaps(change, other) for other in larger)


def _overlaps(one: ModuleChange, other: ModuleChange) -> bool:
    """Return whether a module of one is inside a module of the other, or is the same."""
    pairs = ((a, b) for a in one.paths for b in other.paths) if one.root == other.root else ()
    return any(a == b or not a or not b or a.startswith(f"{b}.") or b.startswith(f"{a}.") for a, b in pairs)
