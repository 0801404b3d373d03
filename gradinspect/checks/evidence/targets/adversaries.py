"""The labels that two networks which train against each other get for the same made-up examples.

NOTE [Two adversaries]
A discriminator scores what a generator made, cut off from its graph, and later once more with it. Both losses have
labels of one value: the discriminator's says what such examples are, the generator's must say the opposite, or both
pull in one direction. And the discriminator's label of real examples must be another one. The networks are told
apart by their parameters: those of the generator are behind the first scores without a gradient, and behind the second
with one. A generator may also make its discriminator's own loss larger: by a minus, a factor that may be negative, a
Function that reverses gradients, or an optimizer that maximizes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct
from torch.autograd.function import BackwardCFunction

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import leaves_behind, live_behind
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import AgreeingAdversaries
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line with one label
MOST_CALLS = 8  # of a line
MOST_ELEMENTS = 65_536
MOST_NODES = 2_000
_FEW = 100  # calls after a loss, among which it is added to others
_KEEPING = frozenset(
    ("add", "radd", "iadd", "mean", "sum", "stack", "div", "truediv", "squeeze", "item", "detach", "float")
)


class _Told(Struct):
    """The calls on a line that have one label, and the same networks."""

    label: float
    frame: int | None
    live: frozenset[int]  # leaves that a gradient comes to
    cut: frozenset[int]  # other leaves behind the scores
    call: int = OUTSIDE  # the last one
    num_calls: int = 0


class AdversaryLog:
    """Looks at losses with labels of one value. NOTE [Two adversaries]."""

    functions = frozenset(("binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss"))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the scores; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "batch of labels", MOST_ELEMENTS)
        self._num_calls: dict[int | None, int] = {}
        self._varied: set[int | None] = set()  # lines with labels of several values
        self._told: dict[tuple[int | None, float, frozenset[int], frozenset[int]], _Told] = {}

    def note(self, _loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        scores: Any = argument(args, kwargs, 0, "input")
        target: Any = argument(args, kwargs, 1, "target")
        count = self._num_calls.get(number, 0)
        if number in self._varied or count >= MOST_CALLS or not isinstance(scores, torch.Tensor):
            return
        self._num_calls[number] = count + 1
        label = self._label(target, number)
        if label is None or not scores.requires_grad or _has_custom_function(scores):
            self._varied.add(number)
            return
        read = self._flow.read(scores)
        if read.call == OUTSIDE:
            return
        live = frozenset(live_behind(self._flow.calls, read.call)[1])
        cut = frozenset(leaves_behind(self._flow.calls, read)) - live
        told = self._told.setdefault((number, label, live, cut), _Told(label, number, live, cut))
        told.num_calls, told.call = told.num_calls + 1, len(self._flow.calls)

    def _label(self, target: Any, number: int | None) -> float | None:
        """Return the only value of some labels."""
        if type(target) is not torch.Tensor or target.requires_grad or not target.is_cpu or not ops.numel(target):
            return None
        if not self._limit.allows(target, number):
            return None
        with unobserved():
            values = ops.detach(target)
            least, most = float(ops.item(ops.amin(values))), float(ops.item(ops.amax(values)))
        return least if least == most else None

    def _may_be_reversed(self, loss: int) -> bool:
        """Return whether a gradient may have another sign on its way from the loss that is minimized."""
        calls, made = self._flow.calls, {loss}
        for number in range(loss + 1, min(len(calls), loss + _FEW)):
            if not made.isdisjoint(read.call for read in calls[number].reads):
                name = calls[number].name.strip("_")
                if name not in _KEEPING:
                    return name != "backward"
                made.add(number)
        return any(group.get("maximize") for one in live_optimizers() for group in one.param_groups)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[AgreeingAdversaries]:
        """Yield the generators with the label of their discriminators, and discriminators with one label for all."""
        told = [one for one in self._told.values() if one.num_calls >= LEAST_CALLS and one.frame not in self._varied]
        for fake in (one for one in told if one.cut):
            own = [one for one in told if not one.live.isdisjoint(fake.live) and one is not fake]
            real = [one for one in own if one.live.isdisjoint(fake.cut) and one.cut.isdisjoint(fake.cut)]
            against = [one for one in own if not one.live.isdisjoint(fake.cut) and not self._may_be_reversed(one.call)]
            if not real or not against:
                continue
            if {one.label for one in real} == {fake.label}:
                kind, other = "discriminator", real[0]
            elif {one.label for one in against} == {fake.label}:
                kind, other = "generator", against[0]
            else:
                continue
            yield AgreeingAdversaries(
                is_generator=kind == "generator", label=fake.label, num_calls=fake.num_calls,
                fake=frame_of(fake.frame), other=frame_of(other.frame),
            )  # fmt: skip


def _has_custom_function(scores: torch.Tensor) -> bool:
    """Return whether a Function of the program is behind some scores, or there are too many nodes to know."""
    todo: list[Any] = [scores.grad_fn]
    seen = set[Any]()
    while todo and len(seen) < MOST_NODES:
        node = todo.pop()
        if node is None or node in seen:
            continue
        if isinstance(node, BackwardCFunction):
            return True
        seen.add(node)
        todo += [one for one, _ in node.next_functions]
    return bool(todo)
