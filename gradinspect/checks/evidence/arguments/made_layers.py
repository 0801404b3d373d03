"""Which layer, loss or DataLoader has made a call: NOTE [The line that made it] in `lines.made_objects`."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradinspect.checks.evidence.arguments.recurrent_axes import RECURRENT
from gradinspect.checks.evidence.objectives.regressions import LOSSES_OF_TARGETS
from gradinspect.checks.evidence.targets.ranges import RANGES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.graph import Frame

_COLLATES = frozenset(("stack", "tensor", "as_tensor", "cat"))
_LAYERS = LOSSES_OF_TARGETS | frozenset((
    *RANGES, *RECURRENT, "multi_head_attention_forward", "embedding", "ctc_loss", "kl_div",
))  # fmt: skip


class MadeLayerLog:
    """Looks at what is on the stack."""

    functions = _LAYERS | _COLLATES

    def __init__(self, flow: Dataflow) -> None:
        """Share the numbers of calls, and the lines that made objects."""
        self._flow = flow
        self._outside: set[tuple[str, int | None]] = set()  # functions that no layer calls, with the frames they are on

    def note(self, function: str, _args: Sequence[Any], _kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if (function, number) in self._outside:
            return
        call, frame = len(self._flow.calls), sys._getframe(1)
        if function in _COLLATES:
            self._flow.origins.loaded(call, frame)
        elif not self._flow.origins.called(function, call, number, frame):
            self._outside.add((function, number))

    def facts(self, _frame_of: Callable[[int | None], Frame | None]) -> Iterator[object]:
        """Yield nothing: other logs ask for the lines."""
        yield from ()
