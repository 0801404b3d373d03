"""How a call of a torch function affects the flow of values and gradients, judged by its name."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from enum import Enum, auto
from inspect import unwrap
from itertools import islice
from types import CodeType, FrameType
from typing import Any, cast

import torch
from torch import nn
from torch.overrides import resolve_name

from gradinspect.checks.facts.value_flow import DetachCause, short_name
from gradinspect.recording.frames import is_own_file
from gradinspect.torch_api.checkpoints import REENTRANT_FORWARD
from gradinspect.torch_api.nodes import ForwardFrames
from gradinspect.torch_api.operators import is_operator, operator_name
from gradinspect.torch_api.patching.classes import identities
from gradinspect.torch_api.patching.originals import is_grad_enabled, ops
from gradinspect.torch_api.patching.silence import Silence

_VALUES = frozenset(("data", "T", "H", "mT", "mH", "real", "imag"))  # attributes that are tensors of the same values
_TO_PYTHON = frozenset((
    "item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__", "__complex__", "__dlpack__",
))  # fmt: skip
_COPIES = frozenset(("tensor", "as_tensor", "asarray", "new_tensor", "new"))
TAKES_ONLY_TYPE = frozenset((  # or shape, of the first argument: its values go nowhere
    *(f"torch.Tensor.{name}" for name in ("new", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros")),
    *(f"torch.{name}_like" for name in ("empty", "full", "ones", "rand", "randn", "zeros")),
))  # fmt: skip
_AUGMENTED = frozenset(("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__", "__imatmul__"))
_PLAIN = identities(int, float, bool, str, type(None))  # the most frequent arguments, checked first
_TENSORS = identities(torch.Tensor, nn.Parameter)
_CONTAINERS = (list, tuple, dict)
# their code as it is before anything of ours replaces a method
_COPIERS: dict[CodeType, DetachCause] = {deepcopy.__code__: "deepcopy", nn.Module.load_state_dict.__code__: "loaded"}
_DISTRIBUTIONS: list[Any] = [one for one in vars(torch.distributions).values() if isinstance(one, type)]
# the code of each sample() of a distribution, and whether there is an rsample() that gradients flow through
_SAMPLES = {
    unwrap(one.sample).__code__: bool(one.has_rsample)
    for one in sorted(_DISTRIBUTIONS, key=lambda one: bool(getattr(one, "has_rsample", False)))
    if hasattr(one, "sample")
}
MAX_DEPTH = 3
MAX_NESTED = 1_000  # elements of one list of arguments that are inspected


# Without the wrapper that temporarily changes the warning filters, which makes Python forget the warnings shown.
_resolve_name = getattr(resolve_name, "__wrapped__", resolve_name)


class CallKind(Enum):
    """How to interpret a call."""

    __hash__ = object.__hash__  # that of Enum calls a builtin. NOTE [Own builtins]

    SKIPPED = auto()  # returns no tensor, or one without its values
    MAKES = auto()
    WRITES = auto()  # into its first argument
    TO_PYTHON = auto()
    GRADIENT = auto()  # autograd.grad
    READS_GRAD = auto()  # .grad
    FREEZES = auto()
    SWITCHES = auto()  # grad mode


FILLS = frozenset((
    "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_",
))  # fmt: skip  # what was there before is neither read nor left


class GradientTouch(Enum):
    """What a call does to the gradient of a leaf, or to the leaf itself."""

    __hash__ = object.__hash__  # that of Enum calls a builtin. NOTE [Own builtins]

    READS = auto()
    SETS = auto()
    ZEROES = auto()  # in place
    UNSCALES = auto()  # as a GradScaler does
    SETS_DATA = auto()
    READS_DATA = auto()  # to write to its memory, perhaps
    FREEZES = auto()  # or unfreezes
    HOOKS = auto()
    DROPS = auto()  # nothing of gradients: elements at random
    CLIPS_NOTHING = auto()  # perhaps: makes the norm of no gradients
    AVERAGES = auto()  # adds to a tensor, as a moving average does


_TOUCHES = {
    "zero_": GradientTouch.ZEROES,
    "_foreach_zero_": GradientTouch.ZEROES,
    "add_": GradientTouch.AVERAGES,
    "lerp_": GradientTouch.AVERAGES,
    "_amp_foreach_non_finite_check_and_unscale_": GradientTouch.UNSCALES,
}
_ATTRIBUTE_TOUCHES = {
    "Tensor.data.__get__": GradientTouch.READS_DATA,
    "Tensor.data.__set__": GradientTouch.SETS_DATA,
    "Tensor.requires_grad.__set__": GradientTouch.FREEZES,
    "Tensor.requires_grad_": GradientTouch.FREEZES,
    "Tensor.register_hook": GradientTouch.HOOKS,
    "tensor": GradientTouch.CLIPS_NOTHING,
    **{f"nn.functional.{name}": GradientTouch.DROPS for name in ("dropout", "dropout1d", "dropout2d", "dropout3d")},
}


def gradient_touch(name: str) -> GradientTouch | None:
    """Return what a call of this function does to gradients, if it may do anything."""
    if short_name(name) == "grad" and name.endswith(("grad.__get__", "grad.__set__")):
        return GradientTouch.READS if name.endswith("__get__") else GradientTouch.SETS
    return _ATTRIBUTE_TOUCHES.get(name.removeprefix("torch.")) or _TOUCHES.get(short_name(name))


def function_name(func: Callable[..., Any]) -> str:
    """Name a function as torch documents it, an operator without its overload."""
    if is_operator(func):
        return operator_name(func)
    return str(_documented_name(func) or getattr(func, "__name__", func))  # type: ignore[arg-type]


def learn_names() -> None:
    """Let torch list its functions, which it does once, before the program may replace any of them."""
    with Silence():
        _documented_name(torch.add)


def _documented_name(func: Callable[..., Any]) -> str | None:
    try:
        return cast("str | None", _resolve_name(func))
    except Exception:  # torch cannot list what has no name, such as a partial that a program put there
        return None


def call_kind(name: str) -> CallKind:
    """Return how to interpret a call of this function."""
    short = short_name(name)
    if name.endswith((".__get__", ".__set__")):
        return _kind_of_attribute(short, is_set=name.endswith(".__set__"))
    special = {
        "grad": CallKind.GRADIENT,
        "_set_grad_enabled": CallKind.SWITCHES,
        "requires_grad_": CallKind.FREEZES,
        "backward": CallKind.SKIPPED,
    }
    if short in special:
        return special[short]
    if short in _TO_PYTHON:
        return CallKind.TO_PYTHON
    if short.startswith("_foreach_"):  # updates of many parameters, whose values do not mix
        return CallKind.SKIPPED
    is_in_place = short.endswith("_") and not short.endswith("__")
    return CallKind.WRITES if is_in_place or short == "__setitem__" or short in _AUGMENTED else CallKind.MAKES


def detach_cause_of(
    name: str, kind: CallKind, outputs: list[torch.Tensor], frame: FrameType | None, forwards: ForwardFrames
) -> DetachCause:
    """Return why a call took tensors that require grad and returned none that does."""
    short = short_name(name)
    copied = copied_by(frame)
    if kind is CallKind.GRADIENT:
        return "gradient"
    if copied is not None:
        return copied
    if short == "data":
        return "assigned" if kind is CallKind.WRITES else "data"
    if short in ("detach", "detach_"):
        return "detach"
    if short in _COPIES:
        return "copy"
    if not is_grad_enabled():
        return _who_switched_off(frame, forwards)
    if not any(ops.is_floating_point(output) or ops.is_complex(output) for output in outputs):
        return "integer"
    return "assigned" if kind is CallKind.WRITES else "unknown"


def copied_by(frame: FrameType | None) -> DetachCause | None:
    """Return whether `copy.deepcopy` or `load_state_dict` of the program makes a call."""
    while frame is not None and not is_own_file(frame.f_code.co_filename):
        if frame.f_code in _COPIERS:
            return _COPIERS[frame.f_code]
        frame = frame.f_back
    return None


def has_many(*values: object) -> bool:
    """Return whether an argument is a list of more elements than are inspected."""
    return any(isinstance(one, list | tuple) and len(one) > MAX_NESTED for one in values)


def tensors_in(*values: object) -> list[torch.Tensor]:
    """List the tensors in the arguments or results of a call, without running code of the containers."""
    found: list[Any] = []
    for value in values:  # the first two cases are nearly all
        kind = id(type(value))  # NOTE [Classes by identity]
        if kind in _TENSORS:
            found.append(value)
        elif kind not in _PLAIN:
            _collect((value,), MAX_DEPTH, found)
    return found


def _collect(container: object, depth: int, found: list[Any]) -> None:
    for item in islice(_items(container), MAX_NESTED):
        kind = type(item)
        if id(kind) in _PLAIN:
            continue
        if id(kind) in _TENSORS or issubclass(kind, torch.Tensor):
            found.append(item)
        elif depth and issubclass(kind, _CONTAINERS):
            _collect(item, depth - 1, found)


def _items(container: Any) -> Iterator[object]:
    if type(container) is tuple:
        return iter(container)
    if isinstance(container, dict):
        return iter(dict.values(container))
    return list.__iter__(container) if isinstance(container, list) else tuple.__iter__(container)


def _kind_of_attribute(short: str, *, is_set: bool) -> CallKind:
    if short == "requires_grad" and is_set:
        return CallKind.FREEZES
    if short == "grad" and not is_set:
        return CallKind.READS_GRAD
    if short in _VALUES:
        return CallKind.WRITES if is_set else CallKind.MAKES
    return CallKind.SKIPPED


def _who_switched_off(frame: FrameType | None, forwards: ForwardFrames) -> DetachCause:
    """Distinguish the program's no_grad from those inside torch: checkpoints, custom Functions, distributions."""
    samples = []
    while frame is not None:
        if frame.f_code is REENTRANT_FORWARD:
            return "checkpoint"
        if forwards.applied_from(frame) is not None:
            return "function"
        if frame.f_code in _SAMPLES:
            samples.append(_SAMPLES[frame.f_code])
        frame = frame.f_back
    return "sample" if samples and all(samples) else "grad_off"
