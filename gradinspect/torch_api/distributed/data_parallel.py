"""The buckets of DistributedDataParallel, from what it logs of itself. Reading it changes nothing.

NOTE [Buckets are made twice]
At first the parameters are in reverse order of registration: in one bucket, or with find_unused_parameters in buckets
of 1 MiB and then of `bucket_cap_mb`. In the second forward pass they are sorted into new ones, in the order in which
rank 0 had their gradients, unless find_unused_parameters is set without a static graph. The log has the new ones an
iteration later; the first ones are computed as torch does, and must have the sizes that are logged.
Source: torch/nn/parallel/distributed.py `_ddp_init_helper`; torch/csrc/distributed/c10d/reducer.cpp and logger.cpp,
torch 2.13.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import nn

from gradinspect.torch_api.probes import Private, private

_VERB = "grads --ranks"


class BucketLog(NamedTuple):
    """What DistributedDataParallel says of its buckets."""

    contents: tuple[tuple[int, ...], ...]  # the indices of the parameters in each
    is_rebuilt: bool
    is_kept: bool  # for all iterations to come
    cap_bytes: int


@cache
def _names() -> tuple[Private, Private, Private]:
    return (
        private("torch.nn.parallel.DistributedDataParallel._get_ddp_logging_data", only_for=_VERB),
        private("torch.distributed._compute_bucket_assignment_by_size", only_for=_VERB),
        private("torch.distributed._DEFAULT_FIRST_BUCKET_BYTES", only_for=_VERB),
    )


def data_parallel_type() -> type[nn.Module] | None:
    """Return the class, if this torch was built with it."""
    return torch.nn.parallel.DistributedDataParallel if torch.distributed.is_available() else None


def is_reducing(model: Any) -> bool:
    """Return whether a backward call now reduces the gradients; not in `no_sync()`."""
    return bool(model.require_backward_grad_sync)


def ignored_names(model: Any) -> frozenset[str]:
    """Return the parameters that a model leaves out."""
    return frozenset(model.parameters_to_ignore)


def bucket_log(model: Any, parameters: Sequence[torch.Tensor]) -> BucketLog | None:
    """Return the buckets that the next backward call of a model fills; None if they are not known.

    Args:
        model: The DistributedDataParallel.
        parameters: Those it reduces, in order.

    Raises:
        GradInspectError: This torch does not say.
    """
    log: Mapping[str, Any] = _names()[0].required()(model)
    cap_bytes = int(log.get("bucket_cap_bytes", 0))
    if text := log.get("rebuilt_per_bucket_param_indices"):
        contents = tuple(tuple(map(int, part.split())) for part in text.split(","))
        is_known = _has_sizes(contents, parameters, log.get("rebuilt_bucket_sizes", ""))
        return BucketLog(contents, True, True, cap_bytes) if is_known else None
    is_never_rebuilt = bool(model.find_unused_parameters and not model.static_graph)
    if log.get("prev_iteration_grad_ready_order_indices") and not is_never_rebuilt:
        return None  # they have been, and the log does not have them yet
    contents = _first_buckets(model, parameters)
    is_known = _has_sizes(contents, parameters, log.get("bucket_sizes", ""))
    return BucketLog(contents, False, is_never_rebuilt, cap_bytes) if is_known else None


def _first_buckets(model: Any, parameters: Sequence[torch.Tensor]) -> tuple[tuple[int, ...], ...]:
    """Compute them as torch does. NOTE [Buckets are made twice]."""
    if model.static_graph or not model.find_unused_parameters:
        limits = [sys.maxsize]
    elif getattr(model, "bucket_bytes_cap_list", ()):
        limits = list(model.bucket_bytes_cap_list)
    elif model.bucket_bytes_cap_default:
        limits = [_names()[2].required(), model.bucket_bytes_cap]
    else:
        limits = [model.bucket_bytes_cap]
    contents, _ = _names()[1].required()(list(parameters), limits, [False] * len(parameters))
    return tuple(map(tuple, reversed(contents)))


def _has_sizes(contents: Sequence[Sequence[int]], parameters: Sequence[torch.Tensor], logged: str) -> bool:
    """Return whether the parameters in each bucket have as many bytes as the log says."""
    if any(index >= len(parameters) for bucket in contents for index in bucket):
        return False
    sizes = [sum(parameters[index].nbytes for index in bucket) for bucket in contents]
    return sizes == [int(size) for size in logged.split(",") if size.strip()]
