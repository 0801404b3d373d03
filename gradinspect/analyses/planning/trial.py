"""What a real run of a plan has shown, beside a real run of the plain program."""

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import TypeAlias

from gradinspect.graph import Record


class Digest(Record, frozen=True):
    """The gradient of one leaf after one backward call, or a parameter after a step."""

    digest: str
    norm: float
    sums: tuple[float, ...] = ()  # of its values with drawn signs: their squares add up to about the norm's square


Calls: TypeAlias = tuple[tuple[Digest, ...], ...]  # of each backward call, in the order of the graph's leaves


class RealSteps(Record, frozen=True):
    """What steps did, unwatched but for their times and their gradients."""

    seconds: tuple[float, ...]  # of each step; the first one also warms up
    gradients: Calls
    parameters: tuple[Digest, ...] = ()  # in the same order, after the last step


class Trial(Record, frozen=True):
    """A plan that was tried."""

    plain_peak_bytes: int
    measured_peak_bytes: int
    plain_seconds: tuple[float, float] | None  # of a step, least and most; None: there was only the first one
    seconds: tuple[float, float] | None
    bit_equal: bool | None  # gradients, or parameters; None: two runs of the plain program differ: not comparable
    num_different: int = 0
    num_compared: int = 0
    is_of_parameters: bool = False  # after all steps: there is no gradient after backward
    difference: float = 0.0  # its norm, of all gradients together, relative; about a tenth may be wrong of it


def compare(plain: Calls, planned: Calls) -> tuple[int, int, float]:
    """Compare the gradients of two runs: how many there are, how many differ, and by how much all do together."""
    pairs = [pair for calls in zip(plain, planned, strict=False) for pair in zip(*calls, strict=False)]
    different = [(one, other) for one, other in pairs if one.digest != other.digest]
    shapes_differ = list(map(len, plain)) != list(map(len, planned))
    apart = _norm(a - b for one, other in different for a, b in zip(one.sums, other.sums, strict=False))
    return len(pairs), len(different) + shapes_differ, apart / max(_norm(one.norm for one, _ in pairs), 1e-30)


def _norm(values: Iterable[float]) -> float:
    return sqrt(sum(value * value for value in values))


def seconds_of_a_step(runs: Sequence[RealSteps]) -> tuple[float, float] | None:
    """Return the least and the most of all steps but the first of each run, which warms up; None without others."""
    seconds = [each for run in runs for each in run.seconds[1:]]
    return (min(seconds), max(seconds)) if seconds else None
