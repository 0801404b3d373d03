"""What to run, and when to record. Imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gradinspect.graph import Frame, Record
from gradinspect.reads import ReadValues
from gradinspect.source import InputSpec, Source

At: TypeAlias = Literal["backward", "end", "call"]


@dataclass(frozen=True, kw_only=True)
class FakeJob:
    """A job of several ranks, of which one is run."""

    rank: int
    world_size: int


class CompiledRegion(Record, frozen=True):
    """What a program gives to torch.compile, on one of its lines."""

    name: str  # of the function, or of the class of the module
    frame: Frame | None  # where it does
    backend: str = ""  # that it asks for

    @property
    def words(self) -> str:
        """Name it with its line: "Block, compiled at train.py:20"."""
        return self.name if self.frame is None else f"{self.name}, compiled at {self.frame.file}:{self.frame.line}"


@dataclass(frozen=True, kw_only=True)
class CompiledRun:
    """How one of several runs compiles a program, whose values are compared."""

    folder: str  # where the values of the first run are kept
    keeps: bool = False  # it is that run
    num_calls: int | None = None  # how many backward calls that run has looked at
    rounding: int = 0  # which of several other roundings; 0: that of torch
    backend: str | None = None  # of torch.compile; None: the program's own
    alone: CompiledRegion | None = None  # only this is compiled with it
    beside: str = ""  # the backend of all others; none: they run in eager
    replays: bool = False  # run each compiled graph again, operator by operator


@dataclass(frozen=True, kw_only=True)
class Request:
    """The user's request; an observer decides what is recorded."""

    source: Source
    label: str  # the source as the user wrote it
    arguments: tuple[str, ...] = ()
    inputs: tuple[InputSpec, ...] = ()
    backward: int | None = None  # which backward() call; None: the first
    grad: int | None = None  # which autograd.grad() call instead
    at: At | None = None
    goes_on: bool = False  # let the program finish
    root: str | None = None  # name of the tensor to start from
    quiet: bool = False
    fake: bool = False  # run on fake tensors
    values_hint: str = "Move it after the backward call, or run without --fake."  # where fake tensors lack a value
    sizes_hint: str = "Move it after the backward call, or run without --fake."  # where a size depends on values
    answers_reads: bool = False  # of a fake scalar that is printed: give it a number
    hint: float | None = None  # the number that every read of a fake scalar gets
    reads: ReadValues | None = None  # what real steps have read, to be read again on fake tensors
    scratch: Mapping[str, int] | None = None  # of kernels, which earlier runs of the program have measured
    device: str | None = None  # of fake tensors for which the program names none
    keeps_files: bool = False  # put back what the program has written: NOTE [Files are put back] in `kept_files`
    job: FakeJob | None = None  # be this rank of it; the other ranks are not there
    counts_as_cuda: bool = False  # put storages into blocks as CUDA's caching allocator does
    creates_graph: bool = False  # record the graph that backward itself builds
    eager: bool = False  # run what the program compiles as it is written
    loss: str | None = None  # expression of a callable's output, whose backward is run

    @property
    def names_no_call(self) -> bool:
        """Whether no call was chosen: the first backward() counts, or else the first autograd.grad()."""
        return self.backward is None and self.grad is None and self.at in (None, "backward")
