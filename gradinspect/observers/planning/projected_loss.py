"""Find a cross-entropy whose logits come straight from a linear layer: it could be computed in chunks."""

from types import FrameType
from typing import Any, NamedTuple
from weakref import ReferenceType

import torch
from torch import nn
from torch.nn import functional

from gradinspect.analyses.planning.changes import ChunkLoss
from gradinspect.observers.planning.chunked_loss import CONVERTS, COPIES
from gradinspect.observers.planning.outermost_modules import OutermostModules
from gradinspect.recording.names.names import module_paths
from gradinspect.recording.values.storages import storage_key
from gradinspect.runner.run import Run
from gradinspect.torch_api.patching.originals import ops

CHUNKS = (8, 32)
MIN_TOKENS = 64


class _Projection(NamedTuple):
    """A call of a linear layer."""

    module: ReferenceType[nn.Module]
    frame: int | None
    num_tokens: int
    is_converted: bool = False
    is_copied: bool = False  # the call that runs copies its result


class _Found(NamedTuple):
    """A loss of its logits."""

    projection: _Projection
    frame: int | None


class ProjectedLoss:
    """Listens to calls of torch functions."""

    def __init__(self, run: Run, modules: OutermostModules) -> None:
        """Start empty."""
        self._run = run
        self._modules = modules
        self._projections: dict[int, _Projection] = {}  # key of the storage of the logits; a later one may have it too
        self._found: _Found | None = None

    def before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Take part in projections and losses."""
        if func is functional.linear:
            return func
        first = args[0] if args else None
        if getattr(func, "__name__", "") in COPIES and isinstance(first, torch.Tensor):
            known = self._projections.get(storage_key(first) or 0)
            return known and known._replace(
                is_copied=True, is_converted=known.is_converted or func.__name__ in CONVERTS
            )
        if func is functional.cross_entropy and (args or "input" in kwargs):
            logits = args[0] if args else kwargs["input"]
            return self._projections.get(storage_key(logits) or 0) if isinstance(logits, torch.Tensor) else None
        return None

    def after(
        self, begun: Any, result: Any, _start: int, _end: int, number: int | None, frame: FrameType | None
    ) -> None:
        """Note a call that has returned."""
        recorder = self._run.recorder
        where = number if number is not None else recorder.frames.number_of(frame)
        if isinstance(begun, _Projection) and begun.is_copied:
            self._note_copy(begun, result)
            return
        if isinstance(begun, _Projection):
            self._found = _Found(begun, where)
            return
        module, key = recorder.running_module, storage_key(result)
        is_linear = module is not None and type(recorder.modules[module]()) is nn.Linear
        if module is not None and is_linear and key is not None and ops.dim(result) > 1:
            tokens = ops.numel(result) // max(result.shape[-1], 1)
            self._projections[key] = _Projection(recorder.modules[module], where, tokens)

    def _note_copy(self, projection: _Projection, result: Any) -> None:
        key = storage_key(result) if isinstance(result, torch.Tensor) else None
        if key is not None and key not in self._projections:
            self._projections[key] = projection._replace(is_copied=False)

    def offers(self) -> tuple[ChunkLoss, ...]:
        """Return how it could be computed, in few chunks or in many."""
        if self._found is None or self._found.projection.num_tokens < MIN_TOKENS:
            return ()
        projection = self._found.projection
        head = projection.module()
        for number, root in self._modules.alive():
            for path, module in module_paths(root):
                if module is head and path:
                    return tuple(self._offer(number, path, chunks) for chunks in CHUNKS)
        return ()

    def _offer(self, root: int, path: str, chunks: int) -> ChunkLoss:
        projection, loss = self._found or (None, None)
        where, inner = self._line(None if projection is None else projection.frame), self._line(loss)
        what = self._line(None if loss is None else self._run.recorder.frames.own_number(loss))
        return ChunkLoss(
            root=root,
            path=path,
            prefix=self._modules.prefixes_of(root)(path),
            chunks=chunks,
            projection=where[0],
            loss=what[0],
            loss_code=what[1],
            package_line=inner[0] if inner[0] != what[0] else "",
            is_converted=projection is not None and projection.is_converted,
        )

    def _line(self, frame: int | None) -> tuple[str, str]:
        """Name a line, and quote it."""
        record = self._run.recorder.frames.record(frame, self._run.base_folder)
        return ("", "") if record is None else (f"{record.file}:{record.line}", record.code)
