"""Run a program with another backend of torch.compile, and see the graphs that backends compile.

NOTE [Backends, one after the other]
`eager` runs what TorchDynamo has captured, `aot_eager` also AOTAutograd's forward and backward graphs, and
`aot_eager_decomp_partition` also with operators decomposed and the graphs cut as inductor has them cut. The first with
which a program goes wrong is the part that is to blame. `mode` and `options` are for the program's own backend.

NOTE [Equal random numbers]
Inductor draws random numbers by a generator of its own, and decomposes dropout into other draws, unless
`fallback_random` is set: then dropout is that of eager. It is set when the program first calls torch.compile, which is
about to import inductor anyway.
Source: torch/__init__.py, torch/_dynamo/backends/common.py, torch/_inductor/config.py, torch 2.13.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch

from gradinspect.torch_api.patching.patches import Patch, patched

_COMPILE = "compile"
_COMMON = "torch._dynamo.backends.common"
_AOT = "aot_module_simplified"
_COMPILERS = ("fw_compiler", "bw_compiler", "inference_compiler")
_RANDOM = "torch._inductor.config"
_DECOMPOSING = ("inductor", "aot_eager_decomp_partition")  # as inductor is configured
Watch = Callable[[str, Callable[..., Any]], Callable[..., Any]]


@contextmanager
def compiling_with(backend: str | None, asked: list[str], watch: Watch | None = None) -> Iterator[None]:
    """Compile with a backend, whatever the program asks for, with eager's random numbers.

    Args:
        backend: Its name; None: the program's own.
        asked: Gets the names of those that the program asks for, each once.
        watch: Replaces each compiler of a graph of AOTAutograd: it is called with "forward" or "backward", and with
            the compiler.
    """
    with patched(Patch(torch, _COMPILE, lambda original: _Compile(original, backend, asked, watch).wrapper())):
        yield


class _Compile:
    def __init__(self, original: Any, backend: str | None, asked: list[str], watch: Watch | None) -> None:
        self._original = original
        self._backend = backend
        self._asked = asked
        self._watch = watch

    def wrapper(self) -> Any:
        @functools.wraps(self._original)
        def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001  # torch's name
            if torch.compiler.is_compiling():
                return self._original(*args, **kwargs)
            name = _name_of(kwargs.get("backend", "inductor"))
            if not kwargs.get("disable"):
                self._begins(name)
            if self._backend is not None:
                kwargs = {key: value for key, value in kwargs.items() if key not in {"mode", "options"}}
                kwargs["backend"] = self._backend
            return self._original(*args, **kwargs)

        return compile

    def _begins(self, name: str) -> None:
        if name not in self._asked:
            self._asked.append(name)
        if (self._backend or name) in _DECOMPOSING:
            inductor: Any = import_module(_RANDOM)
            inductor.fallback_random = True  # NOTE [Equal random numbers]
        watch, self._watch = self._watch, None
        if watch is not None:
            _see_graphs(watch)


def _name_of(backend: object) -> str:
    return backend if isinstance(backend, str) else str(getattr(backend, "__name__", type(backend).__name__))


def _see_graphs(watch: Watch) -> None:
    """Let the compilers of AOTAutograd's graphs be replaced, for the rest of this process."""
    module = import_module(_COMMON)
    original: Any = getattr(module, _AOT, None)
    if original is None:
        return  # another torch: no graph is seen

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        for name in _COMPILERS:
            if kwargs.get(name) is not None:
                kwargs[name] = watch("backward" if name.startswith("bw") else "forward", kwargs[name])
        return original(*args, **kwargs)

    setattr(module, _AOT, watched)


def run_boxed(compiled: Any, arguments: Sequence[Any]) -> Any:
    """Call a compiled graph as AOTAutograd does."""
    return compiled(list(arguments)) if getattr(compiled, "_boxed_call", False) else compiled(*arguments)


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Say of a function that it takes the arguments of a graph as one list, which AOTAutograd looks for."""
    run._boxed_call = True  # type: ignore[attr-defined]  # of a function
    return run
