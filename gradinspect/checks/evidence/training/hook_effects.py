"""What the hooks of tensors do to gradients: whether one returns only zeros, or the opposite of what it got.

NOTE [Before and after a hook]
torch runs the hooks of a tensor between the nodes that pass a gradient to it and the node that made it, or that
accumulates into it. So what leaves the former is added up, and compared with what reaches the latter. Only nodes around
tensors with hooks are looked at; their gradients are copied, because later nodes may write into them, and the results
are fetched after the engine has run.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

import torch

from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.magnitudes import PendingFigures, direction_of
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.hooks import note_ours
from gradinspect.torch_api.modes import computes_by_itself, unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import can_read_values, is_leaf
from gradinspect.torch_api.weak import HiddenRef

Effect = Literal["zeroed", "reversed"]
MAX_REGISTERED = 100_000
OPPOSITE = -0.9999  # the cosine between both


@dataclass
class Effects:
    """What the hooks of one registration did, one item for each tensor and call."""

    frame: int | None
    leaf: HiddenRef | None = None  # None: operators made the tensors
    seen: list[Effect | None] = field(default_factory=list)
    backward: int | None = None


@dataclass
class _Compared:
    """The gradient of one tensor, before and after its hooks."""

    effects: Effects
    place: int  # which of the node's inputs
    before: torch.Tensor | None = None
    figures: torch.Tensor | None = None  # both norms, and the cosine


@dataclass
class HookEffects:
    """Compares gradients before and after hooks. The log calls it with what it sees."""

    recorder: Recorder
    _leaves: dict[int, Effects] = field(default_factory=dict)  # by the id of the leaf
    _made: dict[tuple[int, int], Effects] = field(default_factory=dict)  # by identity and output
    _by_line: dict[int | None, Effects] = field(default_factory=dict)  # those of tensors that operators made
    _compared: list[_Compared] = field(default_factory=list)
    _handles: list[Any] = field(default_factory=list)

    def registered(self, tensor: torch.Tensor, frame: FrameType | None) -> None:
        """Note that a tensor has got a hook."""
        number = self.recorder.frames.number_of(frame)
        if is_leaf(tensor):
            self._leaves[id(tensor)] = Effects(number, HiddenRef(tensor))
            return
        node = tensor.grad_fn
        if node is not None and len(self._made) >= MAX_REGISTERED:
            self.recorder.errors.pass_over("hook of a tensor", f"after the first {MAX_REGISTERED:,}")
        elif node is not None:
            effects = self._by_line.setdefault(number, Effects(number))
            self._made[self.recorder.others.identity_of(node), tensor.output_nr] = effects

    def begin(self, walked: WalkedGraph, backward: int | None) -> None:
        """Hook the nodes around tensors with hooks, before the engine runs."""
        watched = {(number, one.place): one for number, one in self._watched(walked)}
        if not watched:
            return
        nodes = walked.walk.nodes
        for number, record in enumerate(walked.graph.nodes):
            edges = [
                None if edge is None else watched.get((edge.next_node, edge.input_nr)) for edge in record.next_edges
            ]
            if any(edges):
                self._handles.append(type(nodes[number]).register_hook(nodes[number], _adding(edges)))
        for (number, _), one in watched.items():
            one.effects.backward = backward
            self._handles.append(type(nodes[number]).register_prehook(nodes[number], _comparing(one)))
        self._compared = list(watched.values())
        note_ours(self._handles)

    def end(self) -> None:
        """Remove our hooks: the engine has run."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._compared = [one for one in self._compared if one.figures is not None]

    @property
    def pending(self) -> list[PendingFigures]:
        """What is to be fetched after `end`."""
        return [PendingFigures(0, [one.figures]) for one in self._compared if one.figures is not None]

    def settle(self, rows: Sequence[Sequence[Sequence[float]]]) -> None:
        """Judge what was fetched; nothing if the device has failed."""
        compared, self._compared = self._compared, []
        for one, (figures,) in zip(compared, rows, strict=False):
            one.effects.seen.append(_effect(*figures))

    def found(self) -> Iterator[tuple[Effect, Effects]]:
        """Yield the registrations whose hooks did the same to each gradient."""
        for effects in (*self._leaves.values(), *self._by_line.values()):
            effect = effects.seen[0] if effects.seen else None
            if effect is not None and all(one == effect for one in effects.seen):
                yield effect, effects

    def _watched(self, walked: WalkedGraph) -> Iterator[tuple[int, _Compared]]:
        """Yield the nodes that gradients reach through hooks; what backward starts with was made by no node."""
        roots = {root.node for root in walked.graph.roots}
        for number, leaf in walked.walk.leaves().items() if self._leaves else ():
            effects = self._leaves.get(id(leaf))
            if effects is not None and effects.leaf is not None and effects.leaf() is leaf and number not in roots:
                yield number, _Compared(effects, 0)
        if not self._made:
            return
        numbers = {made: number for number, made in enumerate(walked.walk.sequence_nrs)}
        for (made, place), effects in self._made.items():
            number = numbers.get(made, -1)
            if number not in roots and number >= 0:
                yield number, _Compared(effects, place)
        self._made = {key: one for key, one in self._made.items() if key[0] not in numbers}


def _adding(edges: list[_Compared | None]) -> Callable[..., None]:
    """Make the hook that adds up what leaves a node for tensors with hooks."""

    @uncompiled
    def add(outgoing: tuple[torch.Tensor | None, ...], _incoming: object) -> None:
        for gradient, one in zip(outgoing, edges, strict=False):
            if one is not None and gradient is not None and _is_plain(gradient):
                with unobserved():
                    one.before = ops.clone(gradient) if one.before is None else ops.add(one.before, gradient)

    return add


def _comparing(one: _Compared) -> Callable[..., None]:
    """Make the hook that compares what has reached a node with what was passed to it."""

    @uncompiled
    def compare(incoming: tuple[torch.Tensor | None, ...]) -> None:
        before, one.before = one.before, None
        after = incoming[one.place] if one.place < len(incoming) else None
        if before is None or after is None or not _is_plain(after) or before.shape != after.shape:
            return
        with unobserved():
            first, second = (direction_of(gradient) for gradient in (before, after))
            counts = [ops.to(ops.count_nonzero(values), first.dtype) for values in (first, second)]
            one.figures = ops.stack([*counts, ops.matmul(first, ops.to(second, first.dtype))])

    return compare


def _is_plain(gradient: torch.Tensor) -> bool:
    is_own = type(gradient) is not torch.Tensor and computes_by_itself(gradient)
    return can_read_values() and not is_own and gradient.layout is torch.strided and ops.is_floating_point(gradient)


def _effect(num_before: float, num_after: float, cosine: float) -> Effect | None:
    """Judge by the numbers of nonzero elements, and the cosine."""
    if num_before > 0 and num_after == 0 and cosine == 0:  # it is NaN after a NaN
        return "zeroed"
    return "reversed" if cosine < OPPOSITE else None
