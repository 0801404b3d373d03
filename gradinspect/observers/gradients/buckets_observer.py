"""The buckets of DistributedDataParallel, and the order in which a backward call completes them."""

import os
from collections.abc import Iterator
from typing import Any

import torch
from msgspec.structs import replace

from gradinspect.analyses.gradients.buckets import BucketParameter, BucketReport, Buckets
from gradinspect.graph import Graph, with_other_grads
from gradinspect.observers.gradients.gradient_meter import GradientMeter
from gradinspect.ranks.job import job_of
from gradinspect.recording.names.instances import instances_of
from gradinspect.recording.names.names import named_modules
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.distributed.data_parallel import bucket_log, data_parallel_type, ignored_names, is_reducing
from gradinspect.torch_api.modules import own_parameters

MAX_CALLS = 20  # within which the buckets must have been rebuilt: NOTE [Buckets are made twice]


class BucketsObserver(Observer[BucketReport]):
    """Watches backward calls until one fills the buckets that training keeps, or none is left."""

    def __init__(self, run: Run) -> None:
        """Set up."""
        self._run = run
        self._meter: GradientMeter | None = None  # while the engine runs
        self._report: BucketReport | None = None
        self._num_calls = 0
        self._is_done = False

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Note the buckets, and measure which node runs when."""
        if self._meter is not None or self._run.is_captured(call):
            return None
        if self._is_done or self._num_calls >= MAX_CALLS:
            self._run.stop(call.caller)
            return None
        recorded = self._run.record_call(call) if self._num_calls or self._run.is_wanted(call) else None
        if recorded is None:
            return None
        self._num_calls += 1
        meter = self._meter = GradientMeter(recorded.graph, recorded.outputs, times=True)
        models = tuple(_buckets_of(recorded.graph, meter.leaves()))

        def finish(_returned: object) -> None:
            if self._meter is not meter:
                return
            graph, self._meter = meter.finish(), None
            self._take(graph, models)
            if self._is_done or self._num_calls == MAX_CALLS:
                self._run.stop(call.caller)

        return CallEnd(finish, self.settle)

    def _take(self, graph: Graph, models: tuple[Buckets, ...]) -> None:
        """Keep the call if it fills known buckets, or if it is the first."""
        if models or self._report is None:
            job = job_of(os.environ)
            rank, num_ranks = (0, 1) if job is None else (job.rank, job.num_ranks)
            self._report = BucketReport(graph=graph, models=models, rank=rank, num_ranks=num_ranks)
        has_parallel = bool(_parallel_models())
        self._is_done = not has_parallel or (bool(models) and all(model.is_kept for model in models))

    def settle(self) -> None:
        """Release the hooks of a call that failed."""
        meter, self._meter = self._meter, None
        if meter is not None:
            meter.close()

    def result(self) -> BucketReport | None:
        """Return the last call that fills known buckets."""
        return self._report

    def with_other_grads(self, result: BucketReport, number: int) -> BucketReport:
        """Store the number in the graph."""
        return replace(result, graph=with_other_grads(result.graph, number))


def _parallel_models() -> list[Any]:
    kind = data_parallel_type()
    return [] if kind is None else instances_of(kind)


def _buckets_of(graph: Graph, leaves: dict[int, torch.Tensor]) -> Iterator[Buckets]:
    """Yield the buckets of each model that this backward call reduces, if they are known."""
    nodes = {id(tensor): number for number, tensor in leaves.items()}
    for model in _parallel_models():
        named = _reduced_parameters(model)
        log = bucket_log(model, [tensor for _, tensor in named]) if is_reducing(model) else None
        if log is None or not any(id(tensor) in nodes for _, tensor in named):
            continue

        def parameter(index: int, named: list[tuple[str, torch.Tensor]] = named) -> BucketParameter:
            name, tensor = named[index]
            number = nodes.get(id(tensor))
            leaf = None if number is None else graph.nodes[number].leaf
            known = None if leaf is None else leaf.name
            return BucketParameter(name=known or name, num_bytes=tensor.nbytes, node=number)

        yield Buckets(
            model=graph.model_name,
            buckets=tuple(tuple(map(parameter, bucket)) for bucket in log.contents),
            is_rebuilt=log.is_rebuilt,
            is_kept=log.is_kept,
            cap_bytes=log.cap_bytes,
        )


def _reduced_parameters(model: Any) -> list[tuple[str, torch.Tensor]]:
    """List the parameters that a model reduces, as it numbers them: by module, each once."""
    ignored = ignored_names(model)
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for path, module in named_modules(model.module):
        for name, tensor in own_parameters(module).items():
            full = f"{path}.{name}" if path else name
            if tensor is not None and tensor.requires_grad and full not in ignored:
                found.setdefault(id(tensor), (full, tensor))
    return list(found.values())
