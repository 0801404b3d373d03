"""A part of many alike cases for each run, and all of them in the sweep."""

from collections.abc import Sequence
from typing import Any

import pytest


def one_in(share: int, items: Sequence[Any], first: int = 0) -> list[Any]:
    """Mark all but one in so many items for the sweep.

    Args:
        share: One in how many always runs.
        items: The cases.
        first: Which one is the first to run.
    """
    return [
        item if place % share == first else pytest.param(item, marks=pytest.mark.sweep)
        for place, item in enumerate(items)
    ]
