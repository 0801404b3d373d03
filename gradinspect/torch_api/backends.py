"""Run a program with another backend of torch.compile or none, and see the graphs that backends compile.

NOTE [Backends, one after the other]
`eager` runs what TorchDynamo has captured, `aot_eager` also AOTAutograd's forward and backward graphs, and
`aot_eager_decomp_partition` also with operators decomposed and the graphs cut as inductor has them cut. The first
backend with which a program goes wrong shows which part is at fault. `mode` and `options` are for the program's own
backend.

NOTE [Equal random numbers]
Inductor draws random numbers by a generator of its own, and decomposes dropout into other draws, unless
`fallback_random` is set: then dropout is that of eager. It is set when the program first calls torch.compile, which is
about to import inductor anyway.

NOTE [Compiled in name only]
torch's own switch, an environment variable, makes torch.compile return what it is given, so a program that saves
`model._orig_mod.state_dict()` fails, and one that loads names with `_orig_mod.` finds others. So a module gets the
wrapper that it expects, of the kind that torch.compiler.disable makes. The switch is for direct calls of TorchDynamo.
Source: torch/__init__.py, torch/_inductor/config.py; eval_frame.py, backends/common.py of torch/_dynamo; torch 2.13.
"""

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import nn

from gradinspect.torch_api.patching.patches import Patch, patched

_COMPILE = "compile"
_SWITCH = "TORCHDYNAMO_DISABLE"  # NOTE [Compiled in name only]
_COMMON = "torch._dynamo.backends.common"
_AOT = "aot_module_simplified"
FORWARD, BACKWARD, INFERENCE, PARTITION = "fw_compiler", "bw_compiler", "inference_compiler", "partition_fn"
_RANDOM = "torch._inductor.config"
_PARTITIONING = "torch._functorch.config"
_BUDGET = "activation_memory_budget"
_DECOMPOSING = ("inductor", "aot_eager_decomp_partition")  # as inductor is configured
Parts = dict[str, Callable[..., Any]]  # of a backend, by their names: FORWARD and so on; not each backend has all
Watch = Callable[[Parts], Parts]
Choose = Callable[[Any, str], str | None]  # what is compiled, with which backend -> with which; None: with that
UNCOMPILED = ""  # instead of a backend's name


@contextmanager
def compiling_nothing() -> Iterator[None]:
    """Run as it is written what the program compiles. NOTE [Compiled in name only]."""
    before = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = "1"
    patches = () if before == "1" else (Patch(torch, _COMPILE, _in_name_only),)
    try:
        with patched(*patches):
            yield
    finally:
        if before is None:
            os.environ.pop(_SWITCH, None)
        else:
            os.environ[_SWITCH] = before


def _in_name_only(original: Any) -> Any:
    @functools.wraps(original)
    def compile(model: Any = None, **kwargs: Any) -> Any:  # noqa: A001  # torch's name
        if model is None:
            return functools.partial(compile, **kwargs)
        given_back = original(model, **{**kwargs, "backend": "eager", "disable": True})  # the named one may be missing
        is_wrapped = isinstance(model, nn.Module) and not kwargs.get("disable")
        return torch.compiler.disable(model) if is_wrapped else given_back

    return compile


@contextmanager
def compiling_with(
    choose: Choose, asked: list[str], watch: Watch | None = None, *, as_random_as_eager: bool = True
) -> Iterator[None]:
    """Compile with other backends than the program asks for.

    Args:
        choose: Called for each thing that the program compiles, and the backend that it asks for; returns the backend,
            or `UNCOMPILED`.
        asked: Gets the names of those that the program asks for, each once.
        watch: Called for each graph of AOTAutograd with the parts of the backend; returns those that it replaces.
        as_random_as_eager: Whether to draw eager's random numbers. NOTE [Equal random numbers].
    """
    compiling = _Compile(choose, asked, watch, as_random_as_eager=as_random_as_eager)
    with patched(Patch(torch, _COMPILE, compiling.wrapper)):
        yield


class _Compile:
    def __init__(self, choose: Choose, asked: list[str], watch: Watch | None, *, as_random_as_eager: bool) -> None:
        self._choose = choose
        self._asked = asked
        self._watch = watch
        self._as_random_as_eager = as_random_as_eager

    def wrapper(self, original: Any) -> Any:
        @functools.wraps(original)
        def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001  # torch's name
            model = args[0] if args else kwargs.get("model")
            if model is None or torch.compiler.is_compiling() or kwargs.get("disable"):
                return original(*args, **kwargs)  # as a decorator, it comes here again with the function
            asked = _name_of(kwargs.get("backend") or "inductor")
            backend = self._choose(model, asked)
            self._prepare(asked, backend)
            if backend is None:
                return original(*args, **kwargs)
            kept = {key: value for key, value in kwargs.items() if key not in {"model", "mode", "options"}}
            return (original if backend else uncompiled)(model, **{**kept, "backend": backend})

        uncompiled = _in_name_only(original)
        return compile

    def _prepare(self, name: str, backend: str | None) -> None:
        if name not in self._asked:
            self._asked.append(name)
        if self._as_random_as_eager and (name if backend is None else backend) in _DECOMPOSING:
            inductor: Any = import_module(_RANDOM)
            inductor.fallback_random = True  # NOTE [Equal random numbers]
        watch, self._watch = self._watch, None
        if watch is not None:
            _see_graphs(watch)


def _name_of(backend: object) -> str:
    return backend if isinstance(backend, str) else str(getattr(backend, "__name__", type(backend).__name__))


def _see_graphs(watch: Watch) -> None:
    """Let parts of the backend be replaced for each graph of AOTAutograd, for the rest of this process."""
    module = import_module(_COMMON)
    original: Any = getattr(module, _AOT, None)
    if original is None:
        return  # another version of torch: no graph is seen

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        names = (FORWARD, BACKWARD, INFERENCE, PARTITION)
        parts = {name: kwargs[name] for name in names if kwargs.get(name) is not None}
        return original(*args, **{**kwargs, **watch(parts)})

    setattr(module, _AOT, watched)


def run_boxed(compiled: Any, arguments: Sequence[Any]) -> Any:
    """Call a compiled graph as AOTAutograd does."""
    return compiled(list(arguments)) if getattr(compiled, "_boxed_call", False) else compiled(*arguments)


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Mark a function as one that takes the arguments of a graph as one list, which AOTAutograd looks for."""
    run._boxed_call = True  # type: ignore[attr-defined]  # of a function
    return run


def memory_budget() -> float:
    """Return which part of what eager keeps torch's partitioner may keep; 1, unless the program has set it."""
    return float(getattr(import_module(_PARTITIONING), _BUDGET, 1.0))


@contextmanager
def with_memory_budget(budget: float) -> Iterator[None]:
    """Let torch's partitioner keep less, and compute more again in backward."""
    config: Any = import_module(_PARTITIONING)
    with config.patch(**{_BUDGET: budget}):
        yield
