"""What to run, and when to look. Imports no torch."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from gradinspect.source import InputSpec, Source

At: TypeAlias = Literal["backward", "end", "call"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked to look at; an observer decides what is looked for."""

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
    device: str | None = None  # of fake tensors for which the program names none
    creates_graph: bool = False  # look at the graph that backward itself builds

    @property
    def names_no_call(self) -> bool:
        """Whether any engine call will do: the first backward(), or the first autograd.grad() where there is none."""
        return self.backward is None and self.grad is None and self.at in (None, "backward")
