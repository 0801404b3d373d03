"""Terms of a loss that reach only what another optimizer holds, because they were cut off from what this one trains.

NOTE [Idle terms]
The adversarial term of a generator that is given `fake.detach()` still has a graph: through the discriminator. Beside a
second term, the generator has gradients, and nothing is missing. So for each term of a sum it is asked which leaves it
reaches, and from which it was cut off. It is idle if, after each backward on its line and before the next one, the
optimizer of those that it was cut off from steps, and no optimizer of those that it reaches does. Losses of several
optimizers in one backward, and those that are added up over several, are not reported.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import ref

from torch.optim.optimizer import Optimizer

from gradinspect.checks.evidence.optimizer_names import name_of_optimizer
from gradinspect.checks.evidence.training.gradient_use import held_by
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.loss_terms import ADDS, SCALAR
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, Read, calls_behind
from gradinspect.checks.facts.values import IdleTerm
from gradinspect.graph import Frame

LEAST_ROUNDS = 2
MAX_ROUNDS = 12  # backward calls on a line that are looked at, however many steps that takes
MAX_STEPS = 20_000  # from call to call, up to which more of them are
_CAUSES = frozenset(("detach", "data", "grad_off"))
_Key = tuple[int | None, int | None]  # the frames of a term and of what cut it off


class _Split(NamedTuple):
    """A term, what it reaches, and what it was cut off from."""

    made: int  # the call that made the term
    cut: int
    reached: frozenset[int]  # leaves
    lost: frozenset[int]


class _Stepper(NamedTuple):
    """An optimizer that has stepped."""

    optimizer: ref[Optimizer]
    name: str


@dataclass
class _Seen:
    fact: IdleTerm
    num_rounds: int = 0  # in which it was idle
    is_used: bool = False


@dataclass
class IdleTerms:
    """Tracks terms from backward to the steps that follow."""

    flow: Dataflow
    line: Callable[[int | None], Frame | None]  # records a frame, by its number
    _seen: dict[_Key, _Seen] = field(default_factory=dict)
    _open: list[tuple[_Key, _Split, Frame | None]] = field(default_factory=list)  # since the last backward
    _stepped: dict[int, set[int]] = field(default_factory=dict)  # since then: the ids of optimizers, what they hold
    _steppers: dict[int, _Stepper] = field(default_factory=dict)  # by the ids of optimizers
    _rounds: dict[Frame | None, int] = field(default_factory=dict)  # that were looked at, by the line of backward
    _long: set[Frame | None] = field(default_factory=set)  # lines of which no more are
    num_passed_over: int = 0  # calls that were not looked at

    def unobserved(self) -> None:
        """Judge what the last call has shown: it is not known what steps next."""
        self._judge()

    def begin(self, root: Read, backward: Frame | None) -> None:
        """Judge what the last call has shown, and look at the terms of the next one."""
        self._judge()
        self._rounds[backward] = self._rounds.get(backward, 0) + 1
        if backward in self._long:
            self.num_passed_over += 1
            return
        calls = self.flow.calls
        steps: list[int] = []
        for one in split_terms(calls, root, steps):
            key = calls[one.made].frame, calls[one.cut].frame
            self._open.append((key, one, backward))
        if self._rounds[backward] >= MAX_ROUNDS and sum(steps) > MAX_STEPS:
            self._long.add(backward)

    def stepped(self, optimizer: Optimizer) -> None:
        """Note a step."""
        known = self._steppers.get(id(optimizer))
        if known is None or known.optimizer() is not optimizer:
            self._steppers[id(optimizer)] = _Stepper(ref(optimizer), name_of_optimizer(optimizer))
        if self._open:
            self._stepped.setdefault(id(optimizer), set()).update(map(id, held_by(optimizer)))

    def found(self) -> Iterator[IdleTerm]:
        """Yield the terms that were idle each time. What came after the last backward may go on."""
        yield from (one.fact for one in self._seen.values() if one.num_rounds >= LEAST_ROUNDS and not one.is_used)

    def _judge(self) -> None:
        opened, self._open = self._open, []
        stepped, self._stepped = self._stepped, {}
        for key, one, backward in opened:
            reached, lost = self._ids(one.reached), self._ids(one.lost)
            trained = next((number for number, held in stepped.items() if held & lost), None)
            owner = self._owner(reached)
            if trained is None or owner is None:
                continue
            calls = self.flow.calls
            fact = IdleTerm(
                op=calls[one.cut].name, cause=calls[one.cut].cause or "unknown", cut=self.line(key[1]),
                term=self.line(key[0]), backward=backward, optimizer=self._steppers[trained].name, other=owner,
            )  # fmt: skip
            seen = self._seen.setdefault(key, _Seen(fact))
            seen.num_rounds += 1
            seen.is_used = seen.is_used or any(held & reached for held in stepped.values())

    def _owner(self, reached: Collection[int]) -> str | None:
        """Name the optimizer that has stepped before, and holds all that a term reaches."""
        for stepper in self._steppers.values():
            optimizer = stepper.optimizer()
            if optimizer is not None and reached and {id(one) for one in held_by(optimizer)}.issuperset(reached):
                return stepper.name
        return None

    def _ids(self, leaves: Collection[int]) -> set[int]:
        return {id(leaf) for number in leaves if (leaf := self.flow.leaf(number)) is not None}


def split_terms(calls: Sequence[Call], root: Read, steps: list[int] | None = None) -> Iterator[_Split]:
    """Yield the terms of a scalar loss that reach leaves, and were cut off from leaves that other terms reach.

    Args:
        calls: In the order in which they were made.
        root: The loss.
        steps: Takes how many calls were looked at behind each term.
    """
    terms = {
        read.call
        for number in calls_behind(calls, root, SCALAR)
        if calls[number].name.strip("_") in ADDS
        for read in calls[number].reads
        if read.leads_back and read.call != OUTSIDE and calls[read.call].name.strip("_") not in ADDS
    }
    behind = {term: _behind(calls, term, steps) for term in sorted(terms)} if len(terms) > 1 else {}
    for term, (reached, cuts) in behind.items():
        others = {leaf for other, (leaves, _) in behind.items() if other != term for leaf in leaves}
        for cut in cuts:
            sources = [read for read in calls[cut].reads if read.is_live]
            lost = {leaf for read in sources for leaf in _sources(calls, read)}
            if lost & others and not lost & reached:
                yield _Split(term, cut, frozenset(reached), frozenset(lost))


def _sources(calls: Sequence[Call], read: Read) -> set[int]:
    return {read.leaf} if read.leaf != NO_LEAF else _behind(calls, read.call)[0]


def _behind(calls: Sequence[Call], number: int, steps: list[int] | None = None) -> tuple[set[int], list[int]]:
    """Collect the leaves that a gradient of what a call made reaches, and the calls that cut it off from others."""
    leaves: set[int] = set()
    cuts: list[int] = []
    todo, seen = [number], {OUTSIDE}
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        if calls[one].cause is not None:
            cuts += [one] if calls[one].cause in _CAUSES else []
            continue
        leaves.update(read.leaf for read in calls[one].reads if read.leaf != NO_LEAF and read.is_live)
        todo += [read.call for read in calls[one].reads if read.leaf == NO_LEAF]
    if steps is not None:
        steps.append(len(seen))
    return leaves, cuts
