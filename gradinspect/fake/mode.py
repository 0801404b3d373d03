"""Run a program on fake tensors: shapes, dtypes and the graph are real, there are no values and no memory.

NOTE [What a program cannot do without values]
`loss.item()`, `x[mask]`, `if tensor:` need values. Torch raises there, and we report the line, unless it is answered:
NOTE [Losses that are printed]. On a build without CUDA
a fake CUDA tensor can be made, but the first autograd op on it aborts the process; on a build with CUDA and no device
the op runs, but not the one that a device would run. So such a tensor is rejected as soon as it is made.
"""

import os
import traceback
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import torch

from gradinspect.errors import GradInspectError, MissingValuesError, text_of
from gradinspect.fake.kernels import NO_COMPRESSED, FakeKernels
from gradinspect.fake.patches import patched_reads, patched_torch
from gradinspect.fake.read_values import TellScratch
from gradinspect.fake.values import AnsweredReads
from gradinspect.recording.frames import RUNNERS, is_user_file
from gradinspect.recording.values.tensors import PLAIN_TYPES
from gradinspect.torch_api.distributed.fake_objects import NoSuchRankError
from gradinspect.torch_api.distributed.fake_ranks import are_fake_ranks
from gradinspect.torch_api.fakes import NEEDS_SIZE, NEEDS_VALUES, FakeTensor, fake_tensor_mode
from gradinspect.torch_api.patching.classes import identities

FAKE_TYPES = PLAIN_TYPES | identities(FakeTensor)
WARNING = "Fake tensors: shapes and bytes are those of a real run, values are not."
_SIZED = "makes a tensor whose size depends on values"
_NUMPY = ".numpy() is not supported for tensor subclasses."
_NO_COLLECTIVE = "Backend fake does not support"
_NAMESPACES = ("c10d.", "_c10d_functional.")  # of an operator that fake tensors do not know
_DISTRIBUTED = os.path.join("torch", "distributed", "")  # noqa: PTH118  # Path drops the last separator
_PIPELINING = os.path.join(_DISTRIBUTED, "pipelining", "")  # noqa: PTH118  # as above
_ALL_RANKS = "Run all ranks: torchrun -m gradinspect."
_OTHER_BUILD = "Install a build that supports it, or use the CPU."
_OTHER_MACHINE = "Run on a machine that has one, or use the CPU."
_WITH_DATA = "Run one rank alone, with --world-size, or run without --fake; fit has --real."
_WITH_VALUES = "Run without --fake; fit has --real."
_NESTED = "shape_env must not be None"  # as torch 2.13 counts the lengths, torch/_subclasses/fake_tensor.py
_OF_A_CLASS = "which is not a subclass of the requested type"  # torch/csrc/autograd/python_variable.cpp, torch 2.13
_SENT = "the data of tensors, as communication between processes does, and fake tensors have none"
_UNSUPPORTED = (  # words of an error, what is missing, and what to do
    ("but its data is not allocated yet", _SENT, _WITH_DATA),  # c10/core/TensorImpl.h, torch 2.13
    (_NESTED, "a nested tensor, whose rows have lengths that fake tensors do not know", _WITH_VALUES),
    (
        _OF_A_CLASS,
        "a tensor of a class of its own, as lazy layers do, which cannot be made of a fake one",
        _WITH_VALUES,
    ),
    (NO_COMPRESSED, "a sparse tensor that cannot be fake", _WITH_VALUES),
    ("not linked with support for cuda", "CUDA: this build of PyTorch has no CUDA", _OTHER_BUILD),
    ("Found no NVIDIA driver", "CUDA: this machine has no CUDA device", _OTHER_MACHINE),
)


class FakeRun:
    """Makes new tensors fake while it is active. Use it as a context manager."""

    def __init__(self, device: str | None, reads: AnsweredReads | None = None) -> None:
        """Set up.

        Args:
            device: Where new tensors are for which the program names none.
            reads: Answers what reads values; None: nothing does.

        Raises:
            GradInspectError: There is no such device, or this build of torch cannot fake it.
        """
        self._device = None if device is None else _checked_device(device)
        self._stack = ExitStack()
        self._kernels = FakeKernels(lambda device: _check_device(device, f"'{device}' was requested"))
        self._reads = reads

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the reader of the result."""
        return (WARNING, *self._kernels.warnings, *(() if self._reads is None else self._reads.notes))

    @property
    def values_from(self) -> str:
        """Where values that were read come from; "" if none were needed, or all were assumed."""
        return "" if self._reads is None else self._reads.values_from

    @property
    def is_bound(self) -> bool:
        """Whether a size that depends on values was taken to be the largest possible."""
        return self._reads is not None and self._reads.is_bound

    def tell_scratch(self, tell: TellScratch) -> None:
        """Report the scratch memory that kernels had in real steps, before their results are made."""
        if self._reads is not None:
            self._reads.tell_scratch = tell

    def __enter__(self) -> Self:
        """Make tensors fake."""
        self._stack.enter_context(fake_tensor_mode())
        self._stack.enter_context(self._kernels)
        if self._reads is not None:
            self._stack.enter_context(self._reads)
            if self._reads.replayed is not None:
                self._stack.enter_context(patched_reads(self._reads.reading))
        self._stack.enter_context(patched_torch(None if self._reads is None else self._reads.draws))
        if self._device is not None:
            self._stack.enter_context(self._device)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Make tensors real again."""
        self._stack.close()


def explain_fake_error(error: BaseException | None, hint: str, sizes_hint: str) -> GradInspectError | None:
    """Explain an error caused by missing values, with its line; None for the program's own errors.

    Args:
        error: The error that the program raised.
        hint: What to do about a line that reads values.
        sizes_hint: What to do about a line that makes a tensor whose size depends on them.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, GradInspectError):
            return error
        if (explained := _explain_missing_ranks(error)) is not None:
            return explained
        if isinstance(error, NEEDS_VALUES) or _NUMPY in text_of(error):
            what, help_ = (_SIZED, sizes_hint) if isinstance(error, NEEDS_SIZE) else ("reads values", hint)
            return MissingValuesError(f"{_place(error)} {what}, which fake tensors do not have.", help_)
        if (explained := _explain_missing_support(error)) is not None:
            return explained
        error = error.__cause__ or error.__context__
    return None


def _explain_missing_support(error: BaseException) -> GradInspectError | None:
    """Explain an error caused by tensors that cannot be fake, or kernels that cannot be asked."""
    text = text_of(error)
    for known, what, help_ in _UNSUPPORTED:
        if known in text:
            return GradInspectError(f"{_place(error)} needs {what}.", help_)
    return None


def explain_largest_size(error: BaseException, sizes_hint: str) -> GradInspectError:
    """Explain an error of a program in which a size was taken to be the largest possible: another may be right."""
    return MissingValuesError(
        f"{_place(error)} fails with the largest size that values could give a tensor: {type(error).__name__}.",
        sizes_hint,
    )


def _explain_missing_ranks(error: BaseException) -> GradInspectError | None:
    """Explain an error caused by ranks that are not there."""
    if isinstance(error, NoSuchRankError):
        return GradInspectError(f"{_place(error)} {text_of(error)}, which --world-size does not run.", _ALL_RANKS)
    if isinstance(error, NEEDS_VALUES) and _is_within(error, _PIPELINING):
        waits = "waits for what other stages of the pipeline send, which --world-size does not run"
        return GradInspectError(f"{_place(error)} {waits}.", _ALL_RANKS)
    if _NO_COLLECTIVE in text_of(error) or text_of(error).startswith(_NAMESPACES):
        needs = "needs a collective that only a real process group can answer"
        return GradInspectError(f"{_place(error)} {needs}: {text_of(error).splitlines()[0]}.", _ALL_RANKS)
    if isinstance(error, NEEDS_VALUES) and _is_within(error, _DISTRIBUTED) and not are_fake_ranks():
        return GradInspectError(f"{_place(error)} needs {_SENT}.", _WITH_DATA)
    return None


def _is_within(error: BaseException, folder: str) -> bool:
    """Return whether a part of torch reads values itself, rather than the program's code that it runs."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    inner = next((file for file in reversed(files) if folder in file or is_user_file(file)), "")
    return folder in inner


def _place(error: BaseException) -> str:
    """Name the program's innermost line in a traceback."""
    every = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in every if is_user_file(frame.filename) and frame.filename not in RUNNERS]
    if not frames:
        return "The program"
    return f"'{frames[-1].line}' ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})"


def _checked_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise GradInspectError(f"Unknown device '{name}'.", "Use a device that torch supports: cpu, cuda.") from None
    _check_device(device, f"--device {name}")
    return device


def _check_device(device: torch.device, where: str) -> None:
    """Reject a device whose kernels cannot be faked because they depend on the actual device."""
    if device.type in ("cpu", "meta"):
        return
    built = torch.accelerator.current_accelerator()
    name = device.type.upper()
    if built is None or built.type != device.type:
        raise GradInspectError(
            f"{where}: this build of PyTorch has no {name}, so its kernels cannot be faked.", _OTHER_BUILD
        )
    if not torch.accelerator.is_available():
        raise GradInspectError(
            f"{where}: this machine has no {name} device, so its kernels cannot be faked.", _OTHER_MACHINE
        )
