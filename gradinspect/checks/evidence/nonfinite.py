"""The origin of a nonfinite loss: a parameter, or the earliest saved value that is not finite.

NOTE [What follows from a NaN]
A gradient that is NaN makes the weights NaN in the next step, and with them every later loss. So once something was
reported, what comes into a later graph from outside, or is made on a reported line, is a consequence.

NOTE [Losses on a device]
To read a loss is to wait for its device, and the saved values are gone after the engine has run. So of a loss on a
device nothing is read: the least and the largest element of each value that may be the origin are taken there before
the engine runs, and fetched together with the statistics of the gradients.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite, isnan
from typing import Literal, NamedTuple, TypeAlias

import torch

from gradinspect.checks.evidence.divergence import LossGrowth
from gradinspect.checks.facts.backward_calls import DivergingLoss, LastStep, NonfiniteLoss
from gradinspect.checks.facts.graphs import FirstNonfinite, NonfiniteValue
from gradinspect.checks.findings import Finding, Place
from gradinspect.checks.registry import findings_on, rule_of
from gradinspect.graph import Frame, Graph
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.values.magnitudes import UNREADABLE, PendingFigures, extremes_row, why_unread
from gradinspect.recording.values.saved import raw_tensor
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.units import format_tensor

State: TypeAlias = Literal["finite", "infinite", "nan"]


class NonfiniteValues:
    """Finds losses that are not finite, unless they follow from what was reported."""

    def __init__(self) -> None:
        """Start before the first call."""
        self.search: PendingSearch | None = None  # of the latest call
        self.last_step: Callable[[int], LastStep | None] = lambda _key: None  # of a tensor, by its id
        self.first: Callable[[EngineCall], FirstNonfinite | None] = lambda _call: None  # that its loss was made of
        self.explains = False  # whether the gradients of the latest call follow from what was reported
        self._reported: set[Place] = set()  # where a NaN was made
        self._has_reported = False
        self._growth = LossGrowth()
        self._diverged: set[Frame | None] = set()  # the backward calls whose losses were reported to grow

    def findings(self, walked: WalkedGraph, call: EngineCall, backward: Frame | None) -> Iterator[Finding]:
        """Look at a call that is about to start; of a loss on a device, begin a search. NOTE [Losses on a device]."""
        self.explains, self.search = False, None
        if any(isinstance(output, torch.Tensor) and not output.is_cpu for output in call.outputs):
            self.search = PendingSearch(walked, call)
            return
        growth = self._growth.note(call, backward)
        if growth is not None and not self._has_reported:
            self._diverged.add(backward)
            steps = (step for key in _keys(walked).values() if (step := self.last_step(key)) is not None)
            for finding in findings_on(DivergingLoss(*growth, next(steps, None), backward)):
                self._note(finding)
                yield finding
        if backward in self._diverged:
            self.explains = True
            return
        self.explains = self._has_reported and _has_nonfinite_leaf(walked)
        value = None if self.explains else nonfinite_value(walked, call)
        first = None if value is None else self.first(call)
        yield from self._found(walked.graph, value, backward, {} if value is None else _keys(walked), first)

    def settled(
        self, search: "PendingSearch", rows: Sequence[Sequence[Sequence[float]]], backward: Frame | None
    ) -> Iterator[Finding]:
        """Look at a call by what was fetched of its search; nothing if its device has failed."""
        num_figures, self.search = len(search.figures), None
        search.figures.clear()  # nothing of ours stays on the device until the next call
        if len(rows) == num_figures:
            search.settle(rows)
            self.explains = self._has_reported and search.has_nonfinite_leaf()
            value = None if self.explains else search.nonfinite_value()
            yield from self._found(search.graph, value, backward, search.keys)

    def _found(
        self,
        graph: Graph,
        value: NonfiniteValue | None,
        backward: Frame | None,
        keys: Mapping[str, int],
        first: FirstNonfinite | None = None,
    ) -> Iterator[Finding]:
        if value is None:
            return
        key = keys.get(value.label) if value.node is None else None
        step = None if key is None else self.last_step(key)
        for finding in findings_on(NonfiniteLoss(graph, value, backward, step, first)):
            is_known = value.node is None or not self._reported.isdisjoint(finding.places[:1])
            self.explains = self._has_reported and is_known
            if not self.explains:
                self._note(finding)
                yield finding

    def judged(self, findings: Sequence[Finding]) -> None:
        """Store what was found in the gradients of a call."""
        for finding in findings:
            if rule_of(finding.code).is_nonfinite:
                self._note(finding)

    def _note(self, finding: Finding) -> None:
        self._has_reported = True
        self._reported.update(finding.places[:1])


class Suspect(NamedTuple):
    """A value that a nonfinite loss may come from."""

    node: int | None  # that made it; None: it came from outside the graph
    label: str
    is_leaf: bool = False

    def value(self, state: State) -> NonfiniteValue | None:
        """Return what to report of it, if anything; a constant such as a mask may contain infinities on purpose."""
        if state == "finite" or (state == "infinite" and self.node is None and not self.is_leaf):
            return None
        kind = "" if self.node is None else f" with {'NaN' if state == 'nan' else 'Inf'}"
        return NonfiniteValue(node=self.node, label=f"{self.label}{kind}", is_nan=self.node is None or state == "nan")


class PendingSearch:
    """The same search of a graph that will be gone, with what is still on its device."""

    def __init__(self, walked: WalkedGraph, call: EngineCall) -> None:
        """Take the extremes of all values, and keep no tensor of the program."""
        self.graph = walked.graph
        self.figures: list[PendingFigures] = []
        self.keys = _keys(walked)
        self._states: dict[int, State] = {}
        with unobserved():
            self._outputs = [self._taken(output) for output in call.outputs if isinstance(output, torch.Tensor)]
            self._leaves = [(self._taken(tensor), one) for tensor, one in _leaves(walked)]
            self._saved = [(self._taken(tensor), one) for tensor, one in _saved(walked)]

    def _taken(self, tensor: torch.Tensor) -> int | None:
        """Take the extremes of a tensor, and return their place; None if there are none."""
        if not _has_values(tensor) or not ops.numel(tensor):
            return None
        try:
            self.figures.append(PendingFigures(ops.numel(tensor), [extremes_row(ops.detach(tensor))]))
        except UNREADABLE:
            return None
        return len(self.figures) - 1

    def settle(self, rows: Sequence[Sequence[Sequence[float]]]) -> None:
        """Take what was fetched of `figures`."""
        for place, ((low, high),) in enumerate(rows):
            is_finite = isfinite(low) and isfinite(high)
            self._states[place] = "nan" if isnan(low) else "finite" if is_finite else "infinite"

    def has_nonfinite_leaf(self) -> bool:
        """Return whether a leaf is not finite."""
        return any(self._state(place) != "finite" for place, _ in self._leaves)

    def nonfinite_value(self) -> NonfiniteValue | None:
        """Return the origin: as the function does."""
        outputs = [self._state(place) for place in self._outputs]
        return _origin(outputs, (one.value(self._state(place)) for place, one in (*self._leaves, *self._saved)))

    def _state(self, place: int | None) -> State:
        return "finite" if place is None else self._states[place]


def nonfinite_value(walked: WalkedGraph, call: EngineCall) -> NonfiniteValue | None:
    """Search the parameters, then the saved values from the first node of the forward pass; None if all is finite.

    Only saved values are known, so the reported operator may come slightly after the cause. The fallback is the output
    itself.
    """
    with unobserved():
        outputs = [_state_of(output) for output in call.outputs if isinstance(output, torch.Tensor)]
        return _origin(
            outputs, (one.value(_state_of(tensor)) for tensor, one in chain(_leaves(walked), _saved(walked)))
        )


def _origin(outputs: Sequence[State], values: Iterable[NonfiniteValue | None]) -> NonfiniteValue | None:
    if all(state == "finite" for state in outputs):
        return None
    itself = NonfiniteValue(node=0, label="the loss itself", is_nan="nan" in outputs)
    return next((value for value in values if value is not None), itself)


def _has_nonfinite_leaf(walked: WalkedGraph) -> bool:
    with unobserved():
        return any(_state_of(tensor) != "finite" for tensor, _ in _leaves(walked))


def _leaves(walked: WalkedGraph) -> Iterator[tuple[torch.Tensor, Suspect]]:
    for number, tensor in walked.walk.leaves().items():
        leaf = walked.graph.nodes[number].leaf
        yield tensor, Suspect(None, (None if leaf is None else leaf.name) or f"#{number}", is_leaf=True)


def _keys(walked: WalkedGraph) -> dict[str, int]:
    """Return the id of each leaf by its label."""
    return {one.label: id(tensor) for tensor, one in _leaves(walked)}


def _saved(walked: WalkedGraph) -> Iterator[tuple[torch.Tensor, Suspect]]:
    """Yield the saved values, from the first node of the forward pass."""
    nodes = walked.graph.nodes
    for number in range(len(nodes) - 1, -1, -1):
        for value in nodes[number].saved:
            tensor = None
            if value.status == "live" and value.tensor is not None:
                tensor = raw_tensor(walked.walk.nodes[number], value)
            if tensor is not None and value.tensor is not None:
                kind = format_tensor(value.tensor.info)
                maker = number if value.origin == "output" else value.tensor.made_by
                yield tensor, Suspect(maker, (value.origin_name or f"a {kind}") if maker is None else kind)


def _has_values(tensor: torch.Tensor) -> bool:
    return why_unread(tensor) is None and (ops.is_floating_point(tensor) or ops.is_complex(tensor))


def _state_of(tensor: torch.Tensor) -> State:
    if not _has_values(tensor):
        return "finite"
    try:
        values = ops.detach(tensor)
        if ops.item(ops.all(ops.isfinite(values))):
            return "finite"
        return "nan" if ops.item(ops.any(ops.isnan(values))) else "infinite"
    except (RuntimeError, NotImplementedError):
        return "finite"
