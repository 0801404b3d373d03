"""Rows of ids that were filled up to one length, where the program does not say with which id.

NOTE [Filled rows]
Rows of unlike length have one id in all places behind their own end, or before their beginning, and nowhere else. An id
that is also in the middle of a row is a token. Rows may lie along the last or along the first dimension.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch

from gradinspect.torch_api.patching.originals import ops

LEAST_SIZE = 2  # rows, and places in each; places that are filled up in one of them


class FilledRows(NamedTuple):
    """Where a batch of ids was filled up."""

    filler: int  # the id
    places: torch.Tensor  # is true there, in the shape of the batch


def filled_rows(ids: torch.Tensor) -> FilledRows | None:
    """Return where a batch of ids was filled up; None if there is no telling. NOTE [Filled rows]."""
    if len(ids.shape) != LEAST_SIZE or min(ids.shape) < LEAST_SIZE:
        return None
    return next(_ways(ids), None)


def _ways(ids: torch.Tensor) -> Iterator[FilledRows]:
    for along in (1, 0):
        for is_behind in (True, False):
            ends = ops.select(ids, along, -1 if is_behind else 0)
            filler = int(ops.item(ops.mode(ends)[0]))
            places = ops.eq(ids, filler)
            ordered = ops.flip(places, (along,)) if is_behind else places
            lengths = ops.sum(ops.cumprod(ordered, along), along)  # of the run at this end of each row
            is_elsewhere = int(ops.item(ops.sum(lengths))) != int(ops.item(ops.sum(places)))
            shortest, longest = int(ops.item(ops.amin(lengths))), int(ops.item(ops.amax(lengths)))
            if not is_elsewhere and shortest < longest and LEAST_SIZE <= longest < ids.shape[along]:
                yield FilledRows(filler, places)
