"""Step through one backward call: the engine runs each node, and its formula is also called by hand.

NOTE [In step with the engine]
The engine itself runs the nodes, so that every hook of the user runs once, a checkpoint recomputes once, and the
program gets the same gradients. In parallel the same is done by hand: the gradients of one input of a node are added in
the order in which they arrive, a node's formula is called on the node's gradients, and the result is summed to the
shape of the forward input and cast to its dtype. Both must agree in every number; if they do not, a hook has changed
the gradient in between, which is shown. (The sign of a zero may differ: vectorized loops and their remainders do not
always keep it.)

A formula is called by hand only if that has no side effects: for built-in nodes, and only if none of their saved
tensors has an unpack hook. The `backward` of a custom Function is the user's code, and runs once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from threading import RLock
from typing import Any, NamedTuple, Protocol

import torch

from gradinspect.analyses.gradients.stepping import Arrived, Check, Passed, SavedPreview, Step, SteppingOutcome
from gradinspect.graph import Graph, Node, SavedValue
from gradinspect.observers.gradients.comparing import is_same
from gradinspect.recording.compiled import named_saved
from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.values.tensor_preview import show_saved, show_tensor
from gradinspect.recording.walk import walk_like
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.engine import current_task, require_tasks
from gradinspect.torch_api.modes import has_dispatch_modes, unseen
from gradinspect.torch_api.nodes import forward_metadata, has_forward_metadata
from gradinspect.torch_api.patching.originals import ops, without_grad
from gradinspect.torch_api.tensors import is_transforming

Gradients = tuple[torch.Tensor | None, ...]
_NOWHERE = -1
_UNREADABLE = "gradients whose values cannot be read"
_BY_HAND = frozenset({"generated", "copy_slices"})
_REASONS = {
    "custom": "the backward of a custom Function is the program's code",
    "compiled": "a compiled backward runs once",
    "opaque": "a C++ node without Python metadata",
}


class LiveStep(NamedTuple):
    """A node that has just run, with its live tensors."""

    step: Step
    grad_fn: Any
    incoming: Gradients
    outgoing: Gradients


class StepListener(Protocol):
    """What looks at the steps."""

    def begin(self, graph: Graph, start: str, with_our_stdio: Callable[[], AbstractContextManager[None]]) -> bool:
        """Look at the graph before the first step, and return whether to continue.

        Args:
            graph: The graph.
            start: The gradient that backward starts with, in words; "" if the program has chosen it.
            with_our_stdio: Restores our folder and streams temporarily, in the middle of the program.
        """

    def ran(self, live: LiveStep) -> bool:
        """Look at a node that has just run, and return whether to continue."""


class _Given(NamedTuple):
    """What a node had before it ran."""

    gradients: Gradients
    arrived: tuple[Arrived, ...]
    saved: tuple[SavedPreview, ...]


class _Sum(NamedTuple):
    tensor: torch.Tensor
    num_added: int


class Lockstep:
    """Steps through one backward call with the engine. Create it before the engine runs, finish after."""

    def __init__(
        self,
        graph: Graph,
        outputs: Sequence[OutputTensor],
        gradients: Iterable[torch.Tensor | None],
        listener: StepListener,
        leave: Callable[["Lockstep"], None],
        *,
        inputs: Iterable[OutputTensor] = (),
    ) -> None:
        """Hook every node.

        Args:
            graph: The record of the graph; its ids are used.
            outputs: Where backward starts.
            gradients: The gradient of each output.
            listener: Called for each step.
            leave: Ends the program when the listener does not continue. Does not return.
            inputs: The inputs of `autograd.grad`, whose gradients the engine returns.
        """
        require_tasks("step")
        self._graph = graph
        self._listener = listener
        self._leave = leave
        self._lock = RLock()
        self._task: int | None = None  # the engine's id of this backward
        self.problem: Exception | None = None  # an error of ours
        self._walk = walk_like(graph, [output.edge[0] for output in outputs])
        self._sums: dict[tuple[int, int], _Sum] = {}
        self._given: dict[int, _Given] = {}
        self._expected: dict[int, torch.Tensor | None] = {}  # leaf -> what its .grad must be at the end
        self._checks: Counter[Check] = Counter()
        self._differing: list[int] = []
        self._changed: list[int] = []
        self._watched: Counter[str] = Counter()
        self._num_steps = 0
        self._compares = not is_transforming()  # transformed tensors have no readable values
        self._has_modes = has_dispatch_modes()  # they would see what we call, and the engine calls what they make of it
        self._has_packed = any(_is_packed(value) for node in graph.nodes for value in node.saved)
        self._wanted = [self._place(tensor) for tensor in inputs]
        self._taken: dict[tuple[int, int], torch.Tensor] = {}
        with unseen():
            for output, gradient in zip(outputs, gradients, strict=False):
                self._add(*self._place(output), gradient)
        self._handles: list[Any] = []
        for number, node in enumerate(self._walk.nodes):
            self._handles.append(type(node).register_prehook(node, self._guarded(partial(self._before, number))))
            if graph.nodes[number].kind != "accumulate_grad":
                self._handles.append(type(node).register_hook(node, self._guarded(partial(self._after, number))))

    def finish(self, returned: Sequence[torch.Tensor | None] = ()) -> SteppingOutcome:
        """Remove the hooks, and compare the sums of the steps with the leaves' `.grad`.

        Args:
            returned: What `autograd.grad` returned, which is compared instead if it was called.
        """
        with unseen():
            pairs = list(self._taken_out(returned) if self._wanted else self._accumulated()) if self._compares else []
        differing = tuple(name for name, is_equal in pairs if is_equal is False)
        num_unread = sum(is_equal is None for _, is_equal in pairs)
        self.close()
        return SteppingOutcome(
            graph=self._graph,
            num_steps=self._num_steps,
            num_equal=self._checks["equal"],
            differing=tuple(self._differing),
            changed=tuple(self._changed),
            watched=tuple(self._watched.most_common()),
            num_leaves=len(pairs) - len(differing) - num_unread,
            differing_leaves=differing,
            num_unread_leaves=num_unread,
        )

    def outcome_so_far(self) -> SteppingOutcome:
        """Return the outcome so far, if the program ends in the middle."""
        return SteppingOutcome(graph=self._graph, num_steps=self._num_steps, is_complete=False)

    def close(self) -> None:
        """Remove the hooks and release everything."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._sums.clear()
        self._given.clear()
        self._expected.clear()
        self._walk.close()

    def _guarded(self, hook: Callable[..., None]) -> Callable[..., None]:
        """Keep an error of ours from the program, and stop looking. Each device has its own thread."""

        @uncompiled
        def guarded(*gradients: Gradients) -> None:
            with self._lock:
                if self.problem is None:
                    try:
                        with unseen():
                            hook(*gradients)
                    except Exception as error:
                        self.problem = error

        return guarded

    def _place(self, output: OutputTensor) -> tuple[int, int]:
        node, nr = output.edge
        return self._walk.numbers.get(node, _NOWHERE), nr

    def _is_inside(self) -> bool:
        """Return whether this is a nested backward, as called by a reentrant checkpoint."""
        task = current_task()
        self._task = task if self._task is None else self._task
        return task != self._task

    def _before(self, number: int, gradients: Gradients) -> None:
        if self._is_inside():
            if self._graph.nodes[number].kind == "accumulate_grad":
                self._expect(number, gradients[0])
            return
        arrived = tuple(self._arrived(number, nr, gradient) for nr, gradient in enumerate(gradients))
        if self._graph.nodes[number].kind == "accumulate_grad":
            self._leaf(number, gradients, arrived)
        else:
            self._given[number] = _Given(gradients, arrived, self._saved(number))

    def _saved(self, number: int) -> tuple[SavedPreview, ...]:
        """Show what a node has saved, before it runs: a compiled one drops it while it does."""
        grad_fn, node = self._walk.nodes[number], self._graph.nodes[number]
        return tuple(show_saved(grad_fn, named_saved(node, grad_fn) if node.kind == "compiled" else node))

    def _after(self, number: int, passed_on: Gradients, _given: Gradients) -> None:
        if self._is_inside():
            return
        gradients, arrived, saved = self._given.pop(number)
        grad_fn, node = self._walk.nodes[number], self._graph.nodes[number]
        reason = self._why_not_by_hand(node)
        made: Gradients | None = None
        if not reason:
            try:
                made = _tuple(grad_fn(*gradients))
            except Exception as error:  # the engine succeeded, so the program is not at fault
                reason = f"calling it by hand raises {type(error).__name__}"
        outgoing, is_read = self._passed(number, made, passed_on)
        is_changed = any(part.is_changed for part in outgoing)
        if made is not None and not is_read and not is_changed:
            made, reason = None, _UNREADABLE
        check: Check = "watched" if made is None else "differs" if is_changed else "equal"
        if made is None:
            self._watched[reason] += 1
        elif is_changed:
            self._differing.append(number)
        self._report(number, gradients, passed_on, Step(
            order=self._num_steps + 1, node=number, incoming=arrived, outgoing=outgoing,
            saved=saved, check=check, reason=reason,
        ))  # fmt: skip

    def _why_not_by_hand(self, node: Node) -> str:
        """Say why not to call a formula again, or "". A CopySlices hides the node that it calls."""
        if not self._compares:
            return "tensors inside a torch.func transform cannot be compared"
        if not has_forward_metadata():
            return "this torch does not expose the shape that a gradient is summed to"
        if self._has_modes:
            return "operators that a mode of the program sees, or changes"
        hides = node.kind == "copy_slices" and self._has_packed
        if hides or any(map(_is_packed, node.saved)):
            return "saved tensors with an unpack hook, which runs once"
        return "" if node.kind in _BY_HAND else _REASONS.get(node.kind, "a node of an unknown kind")

    def _leaf(self, number: int, gradients: Gradients, arrived: tuple[Arrived, ...]) -> None:
        before = getattr(self._walk.nodes[number].variable, "grad", None)
        self._expect(number, gradients[0] if gradients else None)
        self._report(number, gradients, (), Step(
            order=self._num_steps + 1, node=number, incoming=arrived, check="leaf",
            before=None if before is None else show_tensor(before),
        ))  # fmt: skip

    def _expect(self, number: int, gradient: torch.Tensor | None) -> None:
        """Add to the expected `.grad` of a leaf; a reentrant checkpoint may add to it as well."""
        if number not in self._expected:
            before = getattr(self._walk.nodes[number].variable, "grad", None)
            self._expected[number] = None if before is None else ops.clone(before)
        known = self._expected[number]
        with without_grad():
            self._expected[number] = (
                gradient if known is None else known if gradient is None else ops.add(known, gradient)
            )

    def _report(self, number: int, incoming: Gradients, outgoing: Gradients, step: Step) -> None:
        self._num_steps += 1
        if any(part.is_changed for part in step.incoming):
            self._changed.append(number)
        self._checks[step.check] += 1
        for position, gradient in zip(self._graph.nodes[number].next_edges, outgoing, strict=False):
            if position is not None:
                self._add(position.next_node, position.input_nr, gradient)
        if not self._listener.ran(LiveStep(step, self._walk.nodes[number], incoming, outgoing)):
            self._leave(self)

    def _add(self, number: int, nr: int, gradient: torch.Tensor | None) -> None:
        if gradient is None:
            return
        known = self._sums.get((number, nr))
        with without_grad():
            gradient = ops.detach(gradient)
            if known is not None:
                gradient = (
                    ops.add(gradient, known.tensor) if known.tensor.is_sparse else ops.add(known.tensor, gradient)
                )
        self._sums[number, nr] = _Sum(gradient, 1 if known is None else known.num_added + 1)

    def _arrived(self, number: int, nr: int, gradient: torch.Tensor | None) -> Arrived:
        known = self._sums.pop((number, nr), None)
        if known is not None and (number, nr) in self._wanted:
            self._taken[number, nr] = known.tensor
        return Arrived(
            tensor=None if gradient is None else show_tensor(gradient),
            num_added=0 if known is None else known.num_added,
            is_changed=self._compares and is_same(None if known is None else known.tensor, gradient) is False,
        )

    def _passed(self, number: int, made: Gradients | None, passed_on: Gradients) -> tuple[tuple[Passed, ...], bool]:
        """Compare what a node returned with what its formula gives; also return whether all of it could be read."""
        parts, is_read = [], True
        for position, gradient in enumerate(passed_on):
            edge = self._graph.nodes[number].next_edges[position] if made is not None else None
            raw = made[position] if made is not None and edge is not None and position < len(made) else None
            shown = None if gradient is None else show_tensor(gradient)
            if edge is None or made is None:
                parts.append(Passed(tensor=shown))
                continue
            by_hand = self._reduced(raw, edge.next_node, edge.input_nr)
            is_equal = is_same(by_hand, gradient)
            is_read = is_read and is_equal is not None
            parts.append(Passed(
                tensor=shown,
                made_shape=_other_shape(raw, by_hand),
                made_dtype=_other_dtype(raw, by_hand),
                is_changed=is_equal is False,
            ))  # fmt: skip
        return tuple(parts), is_read

    def _reduced(self, made: torch.Tensor | None, number: int, nr: int) -> torch.Tensor | None:
        """Do what the engine does between two nodes: sum what was broadcast, cast to the dtype of the forward input.

        Source: torch/csrc/autograd/engine.cpp validate_outputs, torch 2.13.
        """
        if made is None or made.layout is not torch.strided or made.is_nested:
            return made
        metadata = forward_metadata(self._walk.nodes[number])[nr]
        with without_grad():
            made = ops.detach(made)
            if made.shape != metadata.shape:
                made = ops.sum_to_size(made, metadata.shape)
            return ops.to(made, metadata.dtype) if made.dtype != metadata.dtype else made

    def _accumulated(self) -> Iterator[tuple[str, bool | None]]:
        """Yield each leaf that ran, and whether its `.grad` is the expected sum."""
        for number, expected in self._expected.items():
            after = getattr(self._walk.nodes[number].variable, "grad", None)
            yield self._name(number), is_same(expected, after, to_the_bit=True)

    def _taken_out(self, returned: Sequence[torch.Tensor | None]) -> Iterator[tuple[str, bool | None]]:
        """Yield each input of `autograd.grad`, and whether the returned gradient is the sum of the steps."""
        for place, gradient in zip(self._wanted, returned, strict=False):
            left = self._sums.get(place)
            taken = self._taken.get(place) if left is None else left.tensor
            yield self._name(place[0]), is_same(taken, gradient, to_the_bit=True)

    def _name(self, number: int) -> str:
        leaf = None if number == _NOWHERE else self._graph.nodes[number].leaf
        return (leaf.name if leaf is not None else None) or f"#{number}"


def _is_packed(value: SavedValue) -> bool:
    return value.status in {"packed", "checkpointed", "unreadable"}  # where a hook is, or may be


def _tuple(made: torch.Tensor | Gradients | None) -> Gradients:
    return made if isinstance(made, tuple) else (made,)


def _other_shape(raw: torch.Tensor | None, reduced: torch.Tensor | None) -> tuple[int, ...] | None:
    if raw is None or reduced is None or raw.is_nested or raw.shape == reduced.shape:
        return None
    return tuple(raw.shape)


def _other_dtype(raw: torch.Tensor | None, reduced: torch.Tensor | None) -> str | None:
    if raw is None or reduced is None or raw.dtype == reduced.dtype:
        return None
    return str(raw.dtype).removeprefix("torch.")
