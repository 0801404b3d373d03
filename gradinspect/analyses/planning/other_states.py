"""What other optimizers would hold for the same parameters. It is an estimate: they are not run.

What comes in: the parameters that an optimizer updates. What goes out: the bytes of state that others would have.

NOTE [State by optimizer]
SGD with momentum holds one buffer like the parameter; Adafactor a row and a column of variances, of vectors all
of them; 8-bit Adam one byte for each of two moments with a float for each block of 256, and floats for parameters with
less than 4,096 elements. Versions of bitsandbytes with blocks of 2,048, such as 0.43, hold 1.4% less. Counts of steps
are left out: four bytes each.

Source: torch/optim/sgd.py, torch/optim/_adafactor.py, torch 2.13; bitsandbytes/optim/optimizer.py, 0.50.2.
"""

from collections.abc import Iterable
from math import prod
from typing import Final

from gradinspect.graph import Record

SMALLEST_IN_8_BITS: Final = 4096  # elements
BLOCK: Final = 256  # elements with one scale
FLOAT: Final = 4  # bytes


class ParameterSize(Record, frozen=True):
    """A parameter that is updated."""

    shape: tuple[int, ...]
    item_bytes: int


class OtherState(Record, frozen=True):
    """What one optimizer would hold."""

    optimizer: str
    num_bytes: int


def other_states(parameters: Iterable[ParameterSize]) -> tuple[OtherState, ...]:
    """Estimate what other optimizers would hold, the most first. NOTE [State by optimizer]."""
    parameters = tuple(parameters)
    found = (
        OtherState(optimizer=name, num_bytes=sum(map(state, parameters)))
        for name, state in (
            ("SGD with momentum", _momentum),
            ("8-bit Adam (bitsandbytes)", _in_8_bits),
            ("Adafactor", _factored),
        )
    )
    return tuple(sorted(found, key=lambda one: -one.num_bytes))


def _momentum(parameter: ParameterSize) -> int:
    return prod(parameter.shape) * parameter.item_bytes


def _in_8_bits(parameter: ParameterSize) -> int:
    number = prod(parameter.shape)
    if number < SMALLEST_IN_8_BITS:
        return 2 * number * FLOAT
    return 2 * (number + -(-number // BLOCK) * FLOAT)


def _factored(parameter: ParameterSize) -> int:
    if len(parameter.shape) < 2:
        return _momentum(parameter)
    *outer, rows, columns = parameter.shape
    return prod(outer) * (rows + columns) * parameter.item_bytes
