"""What a rank leaves for the others where they meet: what it is doing, and how it ended."""

from typing import Literal

from gradinspect.graph import Record

Phase = Literal["running", "waiting"]  # in the program; after it, for other ranks


class State(Record, frozen=True, kw_only=True):
    """What a rank is doing."""

    pid: int
    host: str
    started: str  # distinguishes a process from a later one with the same pid
    calls: int = 0  # of backward() and autograd.grad()
    line: str = ""  # of the program, where it is: "train.py:12"
    inside: str = ""  # the function that this line has called
    moves: int = 0  # how often it was somewhere else than before
    beat: int = 0  # counts seconds, to show another host that the process is alive
    phase: Phase = "running"
    is_ready: bool = False  # has recorded what was asked
    communicates: bool = False  # is in a function of torch.distributed


class Outcome(Record, frozen=True, kw_only=True):
    """How a rank ended."""

    exit_code: int = 0
    sentence: str = ""  # what is wrong
    moment: str = ""  # what was recorded: "backward #1", "end"
    facts: tuple[tuple[str, str], ...] = ()  # what is compared: a name and a value
    files: tuple[str, ...] = ()  # that it has written
    has_nothing: bool = False  # it called no backward
