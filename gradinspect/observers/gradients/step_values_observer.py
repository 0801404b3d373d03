"""Keep what a step computes in files, or compare it with what an earlier run has kept.

What comes in: the backward calls of a step. What goes out: how large the losses, the gradients, the buffers and other
tensors that were written into are after each, and by how much they are off; and which share memory in one run only.
"""

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import torch
from torch import nn

from gradinspect.analyses.diff.compiled import ComparedCall, Role, StepValue, StepValues, ValueKey
from gradinspect.analyses.structure.call_names import is_wrapped, without_wrappers
from gradinspect.graph import Graph
from gradinspect.observers.gradients.rounding import OtherRoundings
from gradinspect.observers.gradients.shared_memory import MemoryOwner, lost_and_gained, shown_by_name
from gradinspect.observers.gradients.written_tensors import is_written, tensors_by_name
from gradinspect.observers.graphs.compiled_regions import CompiledRegions
from gradinspect.observers.graphs.compiled_replay import CompiledReplay
from gradinspect.observers.graphs.phases_observer import SteppedOptimizers
from gradinspect.recording.compilation import place_of_break
from gradinspect.recording.frames import source_line
from gradinspect.recording.names.instances import instances_of
from gradinspect.recording.names.names import compiles_nothing
from gradinspect.recording.values.magnitudes import UNREADABLE, dense_of, why_failed, why_unread
from gradinspect.request import CompiledRun
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.backends import compiling_with
from gradinspect.torch_api.compilations import graph_breaks, num_compiled_graphs
from gradinspect.torch_api.hooks import optimizer_steps
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.modules import own_buffers, own_children
from gradinspect.torch_api.patching.originals import ops, without_grad
from gradinspect.torch_api.tensors import plain_tensors_only

MOST_CALLS = 4
_PART = 2**22  # elements at a time
_NAMELESS = "unnamed "
_save, _load = torch.save, torch.load


class StepValuesObserver(Observer[StepValues]):
    """Looks at the calls of the first step, or at the one that was asked for, then stops the program."""

    takes_any_call = True

    def __init__(self, run: Run, how: CompiledRun) -> None:
        """Set up."""
        self._run = run
        self._how = how
        self._folder = Path(how.folder)
        self._backends: list[str] = []
        self._regions = CompiledRegions(how, run.base_folder)
        self._replay = CompiledReplay(run.base_folder) if how.replays else None
        self._calls: list[ComparedCall] = []
        self._values: list[StepValue] = []
        self._steps = SteppedOptimizers()
        self._uncompiled: list[str] = []
        self._is_busy = False

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Begin with the same random numbers in each run, and compile as this run is meant to."""
        _seed()
        with ExitStack() as stack:
            stack.enter_context(optimizer_steps(after=self._steps.stepped, note=self.failed))
            watch = None if self._replay is None else self._replay.watch
            stack.enter_context(compiling_with(self._regions.backend_of, self._backends, watch))
            if self._how.rounding:
                stack.enter_context(OtherRoundings(self._how.rounding))
            yield

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Look at the values when the engine has run."""
        is_one = not self._run.request.names_no_call
        if (is_one and not self._run.is_wanted(call)) or self._is_busy:
            return None
        if self._calls and (is_one or self._has_all()):
            self._run.stop(call.caller)
            return None
        walked = self._run.walk_call(call)
        if walked is None:
            return None
        leaves = _named(walked.graph, walked.walk.leaves())
        walked.walk.close()
        number = len(self._calls)
        frame = walked.graph.captured_at.frame
        self._calls.append(ComparedCall(call.name, None if frame is None else walked.graph.frames[frame]))
        losses = [(output.name or f"loss {place}", output.value) for place, output in enumerate(self._outputs(call))]
        self._is_busy = True

        def finish(returned: object) -> None:
            self._is_busy = False
            gradients = (
                [(name, leaf.grad) for name, leaf in leaves.items()]
                if call.kind == "backward"
                else [(f"result {place}", one) for place, one in enumerate(_tensors(returned))]
            )
            leaves.clear()
            self._take(number, losses, gradients, call.frame)
            losses.clear()

        def abandon() -> None:
            self._is_busy = False
            leaves.clear()
            losses.clear()

        return CallEnd(finish, abandon)

    def _has_all(self) -> bool:
        """Whether the first step has been seen; steps of an optimizer in compiled code are not."""
        if self._how.num_calls is not None:
            return len(self._calls) >= self._how.num_calls
        return self._steps.have_all_stepped() or len(self._calls) == MOST_CALLS

    def _outputs(self, call: EngineCall) -> list[Any]:
        return [output for output in self._run.outputs_of(call) if isinstance(output.value, torch.Tensor)]

    def _take(self, call: int, losses: "Named", gradients: "Named", frame: FrameType | None) -> None:
        with plain_tensors_only(), without_grad(), unobserved():
            path = self._folder / f"{call}.pt"
            kept = _load(path, weights_only=True) if not self._how.keeps and path.is_file() else {}
            found: dict[ValueKey, torch.Tensor] = {}
            modules = _modules()
            self._uncompiled = [path for path, module in modules if compiles_nothing(module)]
            buffers = _buffers(modules)
            written = tensors_by_name(frame, modules, (buffer for _, buffer in buffers))
            by_role = (
                ("loss", _as_kept(losses, kept)),
                ("gradient", _unnamed(gradients, kept)),
                ("buffer", _of_one_name(buffers)),
                ("tensor", _as_written(written, None if self._how.keeps else kept)),
            )
            for role, values in by_role:
                for name, value in values:
                    if value is not None:
                        found[ValueKey(call, role, name)] = value  # type: ignore[arg-type]  # its literals
            if self._how.keeps:
                own = {tuple(key): _copy_or_reason(value) for key, value in found.items()}
                _save(own, path)
                self._values += [_own(key, value, own[tuple(key)]) for key, value in found.items()]
            else:
                self._values += [_beside(key, value, kept.get(tuple(key))) for key, value in found.items()]
            self._values += self._memory(call, shown_by_name(frame, modules))

    def _memory(self, call: int, shown: dict[str, MemoryOwner]) -> Iterable[StepValue]:
        """Keep which tensors share memory, or compare it."""
        path = self._folder / f"{call}.json"
        if self._how.keeps:
            path.write_bytes(msgspec.json.encode(shown))
        elif path.is_file():
            return lost_and_gained(call, shown, msgspec.json.decode(path.read_bytes(), type=dict[str, MemoryOwner]))
        return ()

    def result(self) -> StepValues | None:
        """Return what was seen."""
        if not self._calls:
            return None
        replay = self._replay
        return StepValues(
            calls=tuple(self._calls),
            values=tuple(self._values),
            num_graphs=num_compiled_graphs(),
            breaks=tuple(self._breaks()),
            backends=tuple(self._backends),
            uncompiled=tuple(dict.fromkeys(self._uncompiled)),
            regions=tuple(self._regions.found),
            first_wrong=None if replay is None else replay.first_wrong,
            drawn_again=None if replay is None else replay.drawn_again,
            num_replayed=0 if replay is None else replay.num_compared,
            replay_problem="" if replay is None else replay.problem,
            base_folder=str(self._run.base_folder),
        )

    def _breaks(self) -> Iterator[str]:
        for one in graph_breaks():
            found = place_of_break(one)
            place = None if found is None else source_line(*found, self._run.base_folder)
            yield one.reason if place is None else f"{place.file}:{place.line}: {one.reason}"


def _seed() -> None:
    """Seed the generators alike in every run; a program that seeds them itself does so later."""
    random.seed(0)
    torch.manual_seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)


def _named(graph: Graph, leaves: dict[int, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Name leaves as every run names them: those without a name by their shape and order."""
    found: dict[str, torch.Tensor] = {}
    counts: Counter[str] = Counter()
    for number, leaf in leaves.items():
        record = graph.nodes[number].leaf
        name = None if record is None else record.name
        if name is None:
            shape = ", ".join(map(str, leaf.shape))
            counts[shape] += 1
            name = f"{_NAMELESS}[{shape}]" + (f" {counts[shape]}" if counts[shape] > 1 else "")
        found[without_wrappers(name)] = leaf
    return found


Named = Iterable[tuple[str, Any]]
Kept = Mapping[tuple[object, ...], torch.Tensor | str]


def _as_kept(losses: Named, kept: Kept) -> Named:
    """Name losses as in the run whose values were kept: variables of a compiled function have no names."""
    found = list(losses)
    names = [str(name) for _, role, name in kept if role == "loss"]
    if len(names) != len(found):
        return found
    return [(name, value) for name, (_, value) in zip(names, found, strict=True)]


def _unnamed(gradients: Named, kept: Kept) -> Named:
    """Name the gradient of an unnamed leaf as in the other run, if each run has only one of this shape."""
    found = [(name, value) for name, value in gradients if value is not None]
    theirs = {str(name): value for (_, role, name), value in kept.items() if role == "gradient"}
    left = theirs.keys() - {name for name, _ in found}
    by_shape: dict[tuple[int, ...], list[str]] = {}
    for name in left:
        by_shape.setdefault(_shape_of(theirs[name]), []).append(name)
    nameless = Counter(_shape_of(value) for name, value in found if name.startswith(_NAMELESS) and name not in theirs)
    for name, value in found:
        shape = _shape_of(value)
        is_one = name.startswith(_NAMELESS) and name not in theirs and nameless[shape] == 1
        alike = by_shape.get(shape, []) if is_one else []
        yield (alike[0] if len(alike) == 1 else name), value


def _shape_of(value: torch.Tensor | str) -> tuple[int, ...]:
    return () if isinstance(value, str) else tuple(value.shape)


def _tensors(returned: object) -> list[torch.Tensor]:
    parts = returned if isinstance(returned, tuple | list) else (returned,)
    return [part for part in parts if isinstance(part, torch.Tensor)]


def _as_written(tensors: Mapping[str, torch.Tensor], kept: "Kept | None") -> "Named":
    """Choose the tensors that were written into, or those that an earlier run has kept."""
    names = None if kept is None else {str(name) for _, role, name in kept if role == "tensor"}
    return [(name, one) for name, one in tensors.items() if (is_written(one) if names is None else name in names)]


def _modules() -> list[tuple[str, nn.Module]]:
    """List all modules, by the path from a module that is in no other.

    Of several paths to a shared one it is the shortest: modules are found in another order in each run.
    """
    modules = list(instances_of(nn.Module))
    inner = {id(child) for module in modules for child in own_children(module).values()}
    todo = [module for module in modules if id(module) not in inner]
    paths: dict[int, tuple[str, ...]] = {id(module): () for module in todo}
    while todo:
        module = todo.pop()
        for name, child in own_children(module).items():
            path = paths[id(module)] + (() if is_wrapped(name) else (name,))
            if child is not None and (len(path), path) < _rank(paths.get(id(child))):
                paths[id(child)] = path
                todo.append(child)
    return [(".".join(paths.get(id(module), ())), module) for module in modules]


def _rank(path: tuple[str, ...] | None) -> tuple[float, tuple[str, ...]]:
    return (float("inf"), ()) if path is None else (len(path), path)


def _buffers(modules: Iterable[tuple[str, nn.Module]]) -> list[tuple[str, torch.Tensor]]:
    return [
        (".".join(filter(None, (path, name))), buffer)
        for path, module in modules
        for name, buffer in own_buffers(module).items()
        if buffer is not None
    ]


def _of_one_name(buffers: Sequence[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield them in the order of their names, apart from those that share one."""
    counts = Counter(name for name, _ in buffers)
    return (one for one in sorted(buffers, key=lambda one: one[0]) if counts[one[0]] == 1)


def _copy_or_reason(value: torch.Tensor) -> torch.Tensor | str:
    """Return a copy on the CPU with all elements, or why there is none."""
    reason = why_unread(value)
    if reason is not None:
        return reason
    try:
        return _copied(value)
    except UNREADABLE as error:
        return why_failed(error, value)


def _copied(value: torch.Tensor) -> torch.Tensor:
    values = ops.cpu(ops.detach(value))
    if values.is_quantized:
        values = ops.dequantize(values)
    return ops.clone(ops.contiguous(dense_of(values)))


def _dtype(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def _own(key: ValueKey, value: torch.Tensor, copy: torch.Tensor | str) -> StepValue:
    if isinstance(copy, str):
        return _value(key, value, 0.0, unread=copy)
    norm, _, _ = _distance(copy, None)
    return _value(key, value, norm)


def _value(key: ValueKey, value: torch.Tensor, norm: float, **others: Any) -> StepValue:
    role: Role = key.role
    shape = tuple(map(int, value.shape))
    return StepValue(call=key.call, role=role, name=key.name, dtype=_dtype(value), shape=shape, norm=norm, **others)


def _beside(key: ValueKey, value: torch.Tensor, kept: torch.Tensor | str | None) -> StepValue:
    """Compare a value with the one that the earlier run kept, if it could be kept."""
    copy = _copy_or_reason(value)
    if isinstance(copy, str):
        return _value(key, value, 0.0, unread=copy)
    if kept is None:
        return _value(key, value, 0.0, problem="there is none in eager")
    if isinstance(kept, str):
        return _value(key, value, 0.0, unread=f"{kept}, in eager")
    if kept.shape != copy.shape or kept.dtype != copy.dtype:
        return _value(key, value, 0.0, problem=f"{_kind(copy)}, in eager {_kind(kept)}")
    norm, error, num_odd = _distance(kept, copy)
    return _value(key, value, norm, error=error, num_odd=num_odd)


def _kind(value: torch.Tensor) -> str:
    return f"{_dtype(value)} [{', '.join(map(str, value.shape))}]"


def _distance(kept: torch.Tensor, value: torch.Tensor | None) -> tuple[float, float, int]:
    """Return the norm of a tensor, the norm of its difference from another, and how many are finite in one only."""
    norm = error = 0.0
    num_odd = 0
    parts = ops.split(ops.flatten(kept), _PART) if ops.numel(kept) else ()
    others = ops.split(ops.flatten(value), _PART) if value is not None and ops.numel(kept) else parts
    for part, other in zip(parts, others, strict=True):
        mine, theirs = _wide(part), _wide(other)
        is_number, is_one = ops.isfinite(mine), ops.isfinite(theirs)
        both = ops.logical_and(is_number, is_one)
        num_odd += int(ops.item(ops.sum(ops.logical_xor(is_number, is_one))))
        zero = ops.zeros_like(mine)
        norm += float(ops.item(ops.sum(ops.square(ops.abs(ops.where(is_number, mine, zero))))))
        off = ops.where(both, ops.sub(mine, theirs), zero)
        error += float(ops.item(ops.sum(ops.square(ops.abs(off)))))
    return norm**0.5, error**0.5, num_odd


def _wide(part: torch.Tensor) -> torch.Tensor:
    return ops.to(part, torch.complex128 if ops.is_complex(part) else torch.float64)
