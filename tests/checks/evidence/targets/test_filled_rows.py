"""Which places of a batch of ids were filled up."""

import pytest
import torch

from gradinspect.checks.evidence.targets.filled_rows import filled_rows

ROWS = torch.tensor([[3, 4, 5, 6], [3, 4, 0, 0], [5, 0, 0, 0]])


@pytest.mark.parametrize(
    ("ids", "filler"),
    [
        (ROWS, 0),
        (ROWS.flip(1), 0),
        (ROWS.T, 0),
        (ROWS.T.flip(0), 0),
        (torch.tensor([[3, 0, 5, 6], [3, 0, 4, 0], [5, 0, 0, 0]]), None),
        (torch.tensor([[3, 4, 0, 0], [4, 4, 0, 0]]), None),
        (torch.tensor([[3, 4, 5, 6], [0, 0, 0, 0]]), None),
        (torch.zeros(3, 4, dtype=torch.long), None),
        (torch.arange(4).expand(3, 4), None),
        (ROWS[:1], None),
        (ROWS[0], None),
    ],
)
def test_what_fills_up_is_at_one_end(ids: torch.Tensor, filler: int | None) -> None:
    """And nowhere else, in runs of unlike length."""
    filled = filled_rows(ids)

    assert (None if filled is None else filled.filler) == filler


def test_the_places_have_the_shape_of_the_batch() -> None:
    """True where it was filled up."""
    filled = filled_rows(ROWS.T)

    assert filled is not None
    assert torch.equal(filled.places, ROWS.T == 0)
