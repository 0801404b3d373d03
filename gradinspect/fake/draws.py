"""Draw on the CPU what a real run draws, so that lengths and choices are those of the real run.

NOTE [Draws of a real run]
`n = torch.randint(50, 400, (1,)).item()` sizes what follows, and the order of a shuffled data set sizes its padded
batches. Fake operators draw nothing: whatever the generator gives next would be what a real run has used for weights
and dropout. So after each operator that draws on the CPU, the generator goes on as far as the real operator would have
taken it. A few numbers are drawn by the operator itself; of more, it is tried once per kind of operator how far it goes
for sixteen of them, and the generator skips that. What draws as long as values ask for it, or more than can be skipped
in about a second, loses the generator, until the program seeds it; one that is never seeded is lost from the start.

NOTE [Numbers that are drawn]
`data[i : i + length]` with an `i` of `torch.randint` needs its number, as does `if torch.rand(1) < 0.1`. So a few
numbers that are drawn on the CPU get real values, which fake tensors pass on to what is computed from them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from gradinspect.torch_api.fakes import FakeTensor, give_values, unset_fake_temporarily
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.operators import is_operator

MOST_SKIPPED = 2**29  # bytes drawn one by one, about a second
MOST_REDRAWN = 2**24  # numbers that are drawn by the operator itself
MAX_KEPT = 4096  # numbers
_FEW = 48  # numbers; of fewer than 16, torch draws otherwise
_GROUP = 16
_CPU = "cpu"  # said everywhere: the default device may be another one
_MOST_TRIED = 8 * _FEW  # bytes, for a few numbers
_CHUNK = 2**20
_aten = torch.ops.aten
_UNIFORM, _NORMAL = _aten.uniform_.default, _aten.normal_.default
_IN_PLACE = frozenset(
    (
        _UNIFORM, _NORMAL, _aten.bernoulli_.float, _aten.exponential_.default, _aten.geometric_.default,
        _aten.log_normal_.default, _aten.cauchy_.default, _aten.random_.default, getattr(_aten.random_, "from"),
        _aten.random_.to,
    )
)  # fmt: skip
_CHOICES = (_aten.bernoulli_.Tensor, _aten.bernoulli.default)  # each with a probability of its own
_SHARES = (_aten.rand.default, _aten.rand.generator)
_NORMALS = (
    _aten.randn.default, _aten.randn.generator, _aten.randn_like.default, _aten.normal.float_float,
    _aten.normal.Tensor_float, _aten.normal.float_Tensor, _aten.normal.Tensor_Tensor,
)  # fmt: skip
_INTEGERS = (
    _aten.randint.default, _aten.randint.generator, _aten.randint.low, _aten.randint.low_generator,
    _aten.randint_like.default, _aten.randint_like.low_dtype,
)  # fmt: skip
_ORDERS = (_aten.randperm.default, _aten.randperm.generator)
_VALUED = frozenset((*_SHARES, *_INTEGERS[:4], *_ORDERS))


class Draws:
    """Takes generators as far as the operators of a real run would. NOTE [Draws of a real run]."""

    def __init__(self) -> None:
        """Start where the program does."""
        self.has_guessed = False  # whether a number was kept that a real run would not draw
        self._left = MOST_SKIPPED
        self._left_to_redraw = MOST_REDRAWN
        self._lost: dict[int, tuple[torch.Generator, int]] = {}  # with its seed
        self._lose(torch.default_generator)  # which torch has seeded with any number
        self._steps: dict[object, tuple[int, int] | None] = {}  # bytes for a few numbers, and for sixteen more

    def is_lost(self, generator: torch.Generator) -> bool:
        """Return whether a real run may draw something else from a generator."""
        known = self._lost.get(id(generator))
        if known is not None and _is_seeded(generator, known[1]):
            del self._lost[id(generator)]
            return False
        return known is not None

    def follow(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Draw what an operator would have drawn, which has given a fake result, and keep a few numbers."""
        if not _may_draw(func) or not isinstance(result, FakeTensor) or result.device.type != "cpu":
            return
        generator = _generator_of(args, kwargs)
        with unset_fake_temporarily(), unobserved():
            is_lost = self.is_lost(generator)
            if func in _VALUED and result.dim() <= 1 and result.numel() <= MAX_KEPT:
                if is_lost and func in _SHARES:
                    return
                give_values(result, func(*args, **kwargs))
                self.has_guessed = self.has_guessed or is_lost
            elif not is_lost and not self._has_drawn(func, args, kwargs, result, generator):
                self._lose(generator)

    def redraw(self, draw: Callable[[], object], number: int, generator: torch.Generator | None) -> None:
        """Draw numbers as a function does that goes on for as long as their values ask for it."""
        with unset_fake_temporarily(), unobserved():
            own = torch.default_generator if generator is None else generator
            if self.is_lost(own):
                return
            self._left_to_redraw -= number
            if self._left_to_redraw < 0:
                self._lose(own)
            else:
                draw()

    def _lose(self, generator: torch.Generator) -> None:
        self._lost[id(generator)] = generator, generator.initial_seed()
        _skip(1, generator)  # to a state that no seed gives

    def _has_drawn(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor, generator: torch.Generator
    ) -> bool:
        """Draw, and return whether that was possible."""
        number = result.numel()
        fill = _fill_of(func, args, kwargs)
        if fill is None:
            return False
        kind = (func, result.dtype, number % _GROUP, str([one for one in args if isinstance(one, int | float)]))
        is_counted = number > _FEW and func not in _ORDERS and result.is_contiguous()
        if is_counted and kind not in self._steps:
            self._steps[kind] = self._tried(fill, result)
        steps = self._steps[kind] if is_counted else None
        if steps is not None:
            return self._has_skipped(steps, number, generator)
        self._left_to_redraw -= number
        if self._left_to_redraw >= 0:
            fill(torch.empty_strided(result.shape, result.stride(), dtype=result.dtype, device=_CPU), generator)
        return self._left_to_redraw >= 0

    def _tried(self, fill: "_Fill", result: torch.Tensor) -> tuple[int, int] | None:
        """Try how far a generator goes; None: not by a number of bytes."""
        first = _FEW - _GROUP + result.numel() % _GROUP
        one, more = (
            _num_bytes(fill, torch.empty(number, dtype=result.dtype, device=_CPU)) for number in (first, first + _GROUP)
        )
        return None if one is None or more is None else (one, more - one)

    def _has_skipped(self, steps: tuple[int, int], number: int, generator: torch.Generator) -> bool:
        first, each = steps
        left = first + (number - number % _GROUP - (_FEW - _GROUP)) // _GROUP * each
        self._left -= left
        if self._left < 0:
            return False
        _skip(left, generator)
        return True


_Fill = Callable[[torch.Tensor, torch.Generator], object]


@cache
def _may_draw(func: Any) -> bool:
    return func in _IN_PLACE or (is_operator(func) and torch.Tag.nondeterministic_seeded in func.tags)


def _fill_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Fill | None:
    """Return what fills a tensor as an operator would; None: that depends on values."""
    if func in _IN_PLACE:
        others = {key: value for key, value in kwargs.items() if key != "generator"}
        return lambda tensor, generator: func(tensor, *args[1:], **others, generator=generator)
    if func in _CHOICES:
        return lambda tensor, generator: tensor.bernoulli_(torch.full_like(tensor, 0.5), generator=generator)
    if func in (*_SHARES, _aten.rand_like.default):
        return lambda tensor, generator: tensor.uniform_(generator=generator)
    if func in _NORMALS:
        return lambda tensor, generator: tensor.normal_(generator=generator)
    if func in _ORDERS:
        return lambda tensor, generator: torch.randperm(len(tensor), generator=generator, device=_CPU)
    if func in _INTEGERS:
        bounds = [one for one in args if type(one) is int]
        low, high = bounds if len(bounds) > 1 else (0, *bounds)
        return lambda tensor, generator: tensor.random_(low, high, generator=generator)
    return None


def _is_seeded(generator: torch.Generator, seed: int) -> bool:
    """Return whether a generator is where another seed has put it, or is where its own one does."""
    if generator.initial_seed() != seed:
        return True
    fresh = torch.Generator(generator.device)
    fresh.manual_seed(seed)
    return bool(torch.equal(fresh.get_state(), generator.get_state()))


def _generator_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Generator:
    every = (*args, *kwargs.values())
    return next((one for one in every if isinstance(one, torch.Generator)), torch.default_generator)


def _num_bytes(fill: _Fill, scratch: torch.Tensor) -> int | None:
    """Count the bytes that are drawn one by one for as much; None: the generator is never in the same state."""
    generator, counting = torch.Generator(_CPU), torch.Generator(_CPU)
    generator.manual_seed(0)
    counting.manual_seed(0)
    fill(scratch, generator)
    wanted = generator.get_state()
    for number in range(_MOST_TRIED):
        if torch.equal(counting.get_state(), wanted):
            return number
        _skip(1, counting)
    return None


def _skip(number: int, generator: torch.Generator) -> None:
    scratch = torch.empty(min(number, _CHUNK), dtype=torch.uint8, device=_CPU)
    while number:
        number -= scratch[:number].random_(generator=generator).numel()
