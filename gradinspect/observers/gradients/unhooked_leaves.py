"""Measure the gradients of leaves where nodes can have no hooks, since compiled autograd runs them.

NOTE [No hooks under compiled autograd]
It traces the hooks of nodes too, breaks the graph that it compiles at ours, and compiles again once they are gone. So
none is registered. The gradient of a leaf is read when the engine has run, if there was none before, and if no hook of
the program comes after it. What reaches other nodes is not known.
Source: torch/_dynamo/compiled_autograd.py, torch 2.13.
"""

from collections.abc import Iterator, Mapping

import torch

from gradinspect.errors import GradInspectError
from gradinspect.torch_api.engine import is_compiled_autograd
from gradinspect.torch_api.hooks import tensor_hooks

NOT_RETURNED = "compiled autograd passes them on without our hooks"
ADDED = "compiled autograd has added to a .grad that was there"
CHANGED = "the program's own hooks may change .grad after compiled autograd"


def refuse_compiled_autograd() -> None:
    """Check that nodes can have hooks.

    Raises:
        GradInspectError: Compiled autograd is on. NOTE [No hooks under compiled autograd].
    """
    if is_compiled_autograd():
        raise GradInspectError(
            "Compiled autograd runs this backward call as one piece of code, without its nodes.",
            "--eager runs the program without torch.compile.",
        )


class UnhookedLeaves:
    """What is known before the engine runs of the leaves of a graph."""

    def __init__(self, leaves: Mapping[int, torch.Tensor], *, are_accumulated: bool) -> None:
        """Look at the leaves.

        Args:
            leaves: By the number of their node.
            are_accumulated: Whether the engine fills `.grad`, rather than return gradients.
        """
        self._reasons = {number: _why_unknown(leaf, are_accumulated) for number, leaf in leaves.items()}

    def gradients(self, leaves: Mapping[int, torch.Tensor]) -> Iterator[tuple[int, torch.Tensor | str]]:
        """Yield what each leaf has been given, or why that is not known; nothing of one that got no gradient."""
        for number, leaf in leaves.items():
            gradient = getattr(leaf, "grad", None)
            found = self._reasons[number] or gradient
            if found is not None:
                yield number, found


def _why_unknown(leaf: torch.Tensor, are_accumulated: bool) -> str | None:
    if not are_accumulated:
        return NOT_RETURNED
    if getattr(leaf, "grad", None) is not None:
        return ADDED
    return CHANGED if tensor_hooks(leaf)[1] else None
