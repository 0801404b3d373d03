"""A wrapper that a program puts around a function of torch runs once per call, also where our mode is active."""

import functools
import types
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function

from gradinspect.recording.recorder import Recorder


class Counter:
    """Counts the calls of each function that it wraps."""

    def __init__(self) -> None:
        self.calls = 0

    def wrapped(self, original: Any) -> Any:
        """Wrap as most libraries do."""

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return original(*args, **kwargs)

        return wrapper

    def nameless(self, original: Any) -> Any:
        """Wrap without the name of the original."""
        counted = self.wrapped(original)

        def _(*args: Any, **kwargs: Any) -> Any:
            return counted(*args, **kwargs)

        return _

    def twice(self, original: Any) -> Any:
        """Put a wrapper around a wrapper."""
        return self.nameless(self.wrapped(original))

    def proxied(self, original: Any) -> Any:
        """Put a descriptor there, which makes an object at each access, as wrapt does."""
        return _Proxy(self.wrapped(original))

    def mocked(self, original: Any) -> Any:
        """Put a mock there that takes self, as `mock.patch.object(..., autospec=True)` does."""
        return mock.create_autospec(self.wrapped(original), side_effect=self.wrapped(original))


class _Proxy:
    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.wrapped if instance is None else functools.partial(self.wrapped, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.wrapped(*args, **kwargs)


WAYS = ("wrapped", "nameless", "twice", "proxied")
X = torch.ones(2, 3, 4)
METHODS: dict[str, Callable[[], Any]] = {
    "backward": lambda: torch.ones(3, requires_grad=True).exp().sum().backward(),
    "add": lambda: (X.add(1), X + 1, 1 + X),
    "add_": lambda: torch.ones(3).add_(1).__iadd__(2),
    "__mul__": lambda: X * 2,
    "relu": lambda: (X.relu(), functional.relu(X)),
    "abs": lambda: (X.abs(), abs(X)),
    "norm": lambda: (X.norm(), torch.norm(X)),
    "split": lambda: X.split(1),
    "__len__": lambda: len(X),
    "register_hook": lambda: X.clone().requires_grad_().register_hook(print),
}
FUNCTIONS: dict[tuple[Any, str], Callable[[], Any]] = {
    (functional, "max_pool1d"): lambda: functional.max_pool1d(X, 2),
    (functional, "softplus"): lambda: functional.softplus(X),
    (functional, "cross_entropy"): lambda: nn.CrossEntropyLoss()(X[0], torch.tensor([0, 1, 2])),
    (torch, "meshgrid"): lambda: torch.meshgrid(X[0, 0], X[0, 0], indexing="ij"),
    (torch.functional, "unique"): lambda: torch.functional.unique(X, return_counts=True),
    (torch, "stft"): lambda: torch.stft(torch.ones(8), 4, return_complex=True, window=torch.ones(4)),
    (torch._C._nn, "gelu"): lambda: torch._C._nn.gelu(X),
    (torch.autograd, "grad"): lambda: torch.autograd.grad(*2 * (torch.ones((), requires_grad=True),)),
}


def counts(holder: Any, name: str, wrap: str, call: Callable[[], Any]) -> tuple[int, int, int]:
    """Count the calls of a wrapper without a recorder, with one, and after the recorder has paused."""
    counter = Counter()
    found = []
    original = vars(holder).get(name)
    setattr(holder, name, getattr(counter, wrap)(getattr(holder, name)))
    try:
        call()
        found.append(counter.calls)
        for is_paused in (False, True):
            counter.calls = 0
            with Recorder() as recorder:
                if is_paused:
                    recorder.pause()
                call()
            found.append(counter.calls)
    finally:
        if original is None:
            delattr(holder, name)
        else:
            setattr(holder, name, original)
    return (found[0], found[1], found[2])


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("wrap", WAYS)
def test_a_method_is_called_once(name: str, wrap: str) -> None:
    """Whether torch has it in Python or in C, and whatever was put in its place."""
    plain, recorded, paused = counts(torch.Tensor, name, wrap, METHODS[name])

    assert plain > 0
    assert (recorded, paused) == (plain, plain)


@pytest.mark.slow
@pytest.mark.parametrize("place", FUNCTIONS, ids=lambda place: f"{place[0].__name__}.{place[1]}")
@pytest.mark.parametrize("wrap", ["wrapped", "nameless", "twice", "mocked"])
def test_a_function_is_called_once(place: tuple[Any, str], wrap: str) -> None:
    """Also one that chooses between two private functions, each of which asks modes."""
    plain, recorded, paused = counts(*place, wrap, FUNCTIONS[place])

    assert plain > 0
    assert (recorded, paused) == (plain, plain)


@pytest.mark.parametrize("action", ["__get__", "__set__"])
def test_an_attribute_is_accessed_once(action: str) -> None:
    """A property in the place of an attribute of tensors is run once per access."""
    counter = Counter()
    grad = torch.Tensor.grad
    replaced = property(counter.wrapped(grad.__get__), counter.wrapped(grad.__set__))
    x = torch.ones(3, requires_grad=True)
    with mock.patch.object(torch.Tensor, "grad", replaced), Recorder():
        if action == "__get__":
            x.grad  # noqa: B018  # the access is what is counted
        else:
            x.grad = torch.zeros(3)

    assert counter.calls == 1


def test_what_a_mode_of_the_program_is_given_stays() -> None:
    """A mode of the program gets the wrapper, calls it again as without us, and runs as often."""
    found = []
    for recorder in (nullcontext(), Recorder()):
        counter = Counter()
        seen: list[Any] = []
        replaced = counter.wrapped(torch.Tensor.backward)
        with mock.patch.object(torch.Tensor, "backward", replaced), recorder, _Seeing(seen):
            torch.ones((), requires_grad=True).backward()
        found.append((counter.calls, [func is replaced for func in seen]))

    assert found[0] == found[1]
    assert found[0][0] == 2


class _Seeing(TorchFunctionMode):
    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def test_a_subclass_of_tensors_calls_as_often() -> None:
    """A method that a subclass overrides, and the default of its `__torch_function__`."""
    found, counter = [], Counter()

    class Named(torch.Tensor):
        def backward(self, *args: Any, **kwargs: Any) -> None:
            counter.calls += 100
            super().backward(*args, **kwargs)

    for recorder in (nullcontext(), Recorder()):
        counter.calls = 0
        x = torch.ones((), requires_grad=True).as_subclass(Named)
        replaced = counter.wrapped(torch.Tensor.backward)
        with mock.patch.object(torch.Tensor, "backward", replaced), recorder:
            x.backward()
        found.append(counter.calls)

    assert found[0] == found[1] >= 101


def test_a_decorated_function_of_the_program_that_asks_modes_is_called_once() -> None:
    """It hands its public name to the mode, which is its decorator."""
    counter = Counter()
    module = types.SimpleNamespace()
    scale = 3.0

    def total(x: torch.Tensor, *rest: Any, factor: float = 2.0) -> torch.Tensor:
        if has_torch_function((x,)):
            return handle_torch_function(module.total, (x,), x, *rest)
        return x.sum() * factor * scale

    module.total = counter.wrapped(total)
    with Recorder():
        result = module.total(torch.ones(2), 1, factor=5.0)

    assert (counter.calls, result.item()) == (1, 30.0)


def test_the_listener_is_told_the_function_of_torch() -> None:
    """Not the wrapper around it, by whose name a call could not be judged."""
    told = []

    class Listener:
        def before(self, func: Any, args: Any, kwargs: Any) -> None:
            told.append(func)

    original = torch.Tensor.backward
    with mock.patch.object(torch.Tensor, "backward", Counter().nameless(original)), Recorder() as recorder:
        recorder.listeners.append(Listener())  # type: ignore[arg-type]
        torch.ones((), requires_grad=True).backward()

    assert told[-1] is original
