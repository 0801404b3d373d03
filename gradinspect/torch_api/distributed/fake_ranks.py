"""Torch's fake process group, and the patches with which programs of several ranks run as one of them, alone.

Nothing of `torch.distributed` is imported before a program asks for ranks that are not there: its names are looked up
when they are needed first.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache, wraps
from types import FunctionType
from typing import Any
from weakref import WeakSet

import torch

from gradinspect.errors import GradInspectError
from gradinspect.torch_api.distributed.fake_objects import object_patches
from gradinspect.torch_api.fakes import FakeTensor, unset_fake_temporarily
from gradinspect.torch_api.modes import TorchDispatchMode, unobserved
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.probes import Private, private

_WITH_RANKS = "--world-size"
_C10D = "torch.distributed.distributed_c10d"
_NO_BUCKETS = "DistributedDataParallel cannot be run with --world-size"
_COLLECTIVES = ("c10d", "_c10d_functional")
_NO_COLLECTIVES = frozenset(("wait_tensor", "barrier", "monitored_barrier"))


@cache
def _fake_store() -> Private:
    return private("torch.testing._internal.distributed.fake_pg.FakeStore", only_for=_WITH_RANKS)


@cache
def _group_helper() -> Private:
    return private(f"{_C10D}._new_process_group_helper", only_for=_WITH_RANKS)


@cache
def _bucket_names() -> tuple[Private, Private]:
    return (
        private("torch.distributed._verify_params_across_processes", _NO_BUCKETS, is_rare=True),
        private("torch.nn.parallel.DistributedDataParallel._ddp_init_helper", _NO_BUCKETS, is_rare=True),
    )


@cache
def _propagation() -> Private:
    return private(
        "torch.distributed.tensor._sharding_prop.ShardingPropagator._propagate_tensor_meta_non_cached",
        "fit counts tensors with which DTensor finds shapes",
        is_rare=True,
    )


def require_fake_ranks() -> None:
    """Check that this torch can pretend that there are other ranks.

    Raises:
        GradInspectError: It was built without `torch.distributed`, or has no fake process group.
    """
    if not torch.distributed.is_available():
        raise GradInspectError(
            "This build of PyTorch has no torch.distributed, which --world-size needs.", "Install one that has it."
        )
    _fake_store().required()
    _group_helper().required()


def are_fake_ranks() -> bool:
    """Return whether the process group of the program is the fake one, which sends nothing."""
    group = torch.distributed
    return bool(group.is_available() and group.is_initialized() and group.get_backend() == "fake")


def end_fake_ranks() -> None:
    """Forget the process groups that a program has left behind."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def fake_rank_patches(rank: int, world_size: int, answering: "AnsweredCollectives") -> Iterator[Patch]:
    """Yield patches that answer each process group of a program by a fake one, and what a fake one cannot do."""
    import torch.distributed.device_mesh  # noqa: PLC0415  # the module docstring says why
    import torch.nn.parallel.distributed  # noqa: PLC0415  # as above

    c10d = sys.modules[_C10D]
    yield from _everywhere("init_process_group", lambda original: _initializing(original, rank, world_size))
    yield Patch(c10d, "_new_process_group_helper", _faking_group)
    yield from _everywhere("TCPStore", lambda _original: lambda *_args, **_kwargs: torch.distributed.HashStore())
    yield from _everywhere("monitored_barrier", lambda _original: lambda *_args, **_kwargs: None)
    for name, make in object_patches(rank).items():
        yield from _everywhere(name, make)
    yield from _everywhere("init_device_mesh", _outside_fake_mode)
    mesh = torch.distributed.device_mesh.DeviceMesh
    for name, member in vars(mesh).items():
        if isinstance(member, FunctionType | property | staticmethod):
            yield Patch(mesh, name, _outside_fake_mode)
    _propagation().note_missed()
    if _propagation().is_there:
        owner = sys.modules["torch.distributed.tensor._sharding_prop"].ShardingPropagator
        yield Patch(owner, "_propagate_tensor_meta_non_cached", _unobserved)
    verify, _ = _bucket_names()
    if verify.is_there:
        yield from _everywhere("_verify_params_across_processes", answering.keeping_integers)
    yield Patch(torch.nn.parallel.DistributedDataParallel, "_ddp_init_helper", answering.keeping_integers)
    yield Patch(torch.distributed.Reducer, "_rebuild_buckets", answering.keeping_integers)


def _everywhere(name: str, make: Callable[[Any], Any]) -> Iterator[Patch]:
    """Yield patches of a function of `torch.distributed` in each module of torch that has imported it by name."""
    original = getattr(torch.distributed, name, None) or getattr(sys.modules[_C10D], name, None)
    for module_name, module in sorted(sys.modules.items()):
        if module_name.startswith("torch.") and original is not None and vars(module).get(name) is original:
            yield Patch(module, name, make)


def _initializing(original: Callable[..., Any], rank: int, world_size: int) -> Callable[..., Any]:
    """Ask for the fake group, whatever the program asks for: its own address, store and device are of no use."""

    @wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(original).bind(*args, **kwargs)
        kept = {name: bound.arguments[name] for name in ("timeout", "group_name") if name in bound.arguments}
        return original("fake", store=_fake_store().value(), rank=rank, world_size=world_size, **kept)

    return init_process_group


def _faking_group(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def _new_process_group_helper(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(original).bind(*args, **kwargs)
        bound.arguments["backend"] = torch.distributed.Backend("fake")
        for name in ("backend_options", "pg_options", "device_id"):
            bound.arguments.pop(name, None)
        return original(*bound.args, **bound.kwargs)

    return _new_process_group_helper


def _outside_fake_mode(original: Any) -> Any:
    """Let the places of ranks in a mesh be real numbers, which the program and torch read."""
    if isinstance(original, property):
        return property(*(way and _outside_fake_mode(way) for way in (original.fget, original.fset, original.fdel)))
    if isinstance(original, staticmethod):
        return staticmethod(_outside_fake_mode(original.__func__))

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        with unset_fake_temporarily():
            return original(*args, **kwargs)

    return call


def _unobserved(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let DTensor find shapes over all ranks on fake tensors of its own: they are in no rank's memory."""

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        with unobserved():
            return original(*args, **kwargs)

    return call


class AnsweredCollectives(TorchDispatchMode):
    """Answers what the fake group cannot. Active above a fake mode.

    What waits for a collective gets its tensors, as DistributedDataParallel expects. The integers stay real that its
    C++ code writes and reads by their address.
    """

    def __init__(self) -> None:
        """Know no integers yet."""
        super().__init__()
        self._keeps_integers = False
        self._integers: WeakSet[Any] = WeakSet()  # their storages

    def keeping_integers(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function that makes such integers."""

        def call(*args: Any, **kwargs: Any) -> Any:
            before, self._keeps_integers = self._keeps_integers, True
            try:
                return original(*args, **kwargs)
            finally:
                self._keeps_integers = before

        return call

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator; replace the handle that a collective returns."""
        kwargs = kwargs or {}
        if (self._keeps_integers or self._integers) and self._is_of_integers(args, kwargs):
            with unset_fake_temporarily():
                result = func(*args, **kwargs)
            self._integers.update(tensor.untyped_storage() for tensor in plain_tensors_of(result))
        else:
            result = func(*args, **kwargs)
        if not is_collective(func) or type(result) is not tuple or not _handles().is_there:
            return result
        future: Any = torch.futures.Future()
        future.set_result(plain_tensors_of(result))
        return (*result[:-1], _handles().value(future).boxed())

    def _is_of_integers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        tensors = plain_tensors_of((args, kwargs))
        if not tensors:
            return self._keeps_integers and kwargs.get("dtype") in (torch.int32, torch.int64)
        return all(
            not isinstance(tensor, FakeTensor) and (self._keeps_integers or tensor.untyped_storage() in self._integers)
            for tensor in tensors
        )


def plain_tensors_of(value: Any) -> list[torch.Tensor]:
    """List the tensors in the arguments or the result of an operator."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for part in parts for tensor in plain_tensors_of(part)]


@cache
def _handles() -> Private:
    return private("torch._C._distributed_c10d._create_work_from_future", _NO_BUCKETS, is_rare=True)


def is_collective(func: Any) -> bool:
    """Return whether an operator sends something between ranks."""
    return getattr(func, "namespace", "") in _COLLECTIVES and collective_name(func) not in _NO_COLLECTIVES


def collective_name(func: Any) -> str:
    """Name a collective as its users do: all_gather_into_tensor."""
    name = str(getattr(func, "_opname", func)).removeprefix("_").removesuffix("_")
    return _NAMES.get(name, name)


_NAMES = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce_coalesced",
    "allgather": "all_gather",
    "allgather_base": "all_gather_into_tensor",
    "allgather_into_tensor_coalesced": "all_gather_into_tensor_coalesced",
    "reduce_scatter_base": "reduce_scatter_tensor",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
}


@cache
def _group_names() -> tuple[Private, Private]:
    return (
        private("torch._C.ScriptObject", "the sizes of process groups are not shown", is_rare=True),
        private(f"{_C10D}._resolve_process_group", "the sizes of process groups are not shown", is_rare=True),
    )


def group_size(args: tuple[Any, ...]) -> int | None:
    """Return how many ranks take part in a collective, from its arguments; None if they do not say."""
    boxed, resolve = _group_names()
    for arg in args:
        if boxed.is_there and isinstance(arg, boxed.value):
            try:
                return int(torch.distributed.ProcessGroup.unbox(arg).size())
            except (RuntimeError, AttributeError, TypeError):
                continue  # the reduction, which is an object too
        if isinstance(arg, str) and resolve.is_there:
            try:
                return int(resolve.value(arg).size())
            except (RuntimeError, KeyError, ValueError):
                continue  # the name of the reduction
    return None
