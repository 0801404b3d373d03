"""Samplers that draw from the first examples only, as they have fewer weights than there are examples.

NOTE [A weight for each example]
`WeightedRandomSampler(weights, ...)` draws an index of `weights`. With one weight for each class it draws 0, 1, 2: the
first examples, again and again. The number of examples is read from datasets of torch's and from lists alone, as
`len()` of another one is code of the program's; there, fewer weights than examples in a batch count.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from torch.utils.data import Subset, TensorDataset, WeightedRandomSampler

from gradinspect.checks.evidence.lines.made_objects import iterator_in
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import FewDrawn
from gradinspect.graph import Frame
from gradinspect.recording.names.variables import local_variables
from gradinspect.recording.source_structure import calls_named, own_sources
from gradinspect.torch_api.data.loaders import batches_of, dataset_of
from gradinspect.torch_api.patching.originals import ops

_CLASS = "WeightedRandomSampler"
_FEW_FRAMES = 4  # from a call of torch to the sampler that makes it


class FewDrawnLog:
    """Looks at what samplers draw. NOTE [A weight for each example]."""

    functions = frozenset(("multinomial",))

    def __init__(self, flow: Dataflow) -> None:
        """Share which line made each loader."""
        self._flow = flow
        self.line_in: Callable[[str, int], Frame | None] = lambda _file, _line: None
        self._seen: dict[int | None, tuple[int, int | None]] = {}  # by the line of the loader: weights, examples

    def note(self, _function: str, _args: Sequence[Any], _kwargs: Mapping[str, Any], _number: int | None) -> None:
        """Look at a draw that has returned."""
        frame: FrameType | None = sys._getframe(1)
        sampler = _sampler_in(frame)
        iterator = None if sampler is None else iterator_in(frame)
        if sampler is not None and iterator is not None:
            self._look(iterator, ops.numel(sampler.weights))

    def _look(self, iterator: object, weights: int) -> None:
        num_examples = _length(dataset_of(iterator))
        batch = getattr(batches_of(iterator), "batch_size", None)
        is_few = weights < num_examples if num_examples is not None else isinstance(batch, int) and weights < batch
        if is_few:
            loader = self._flow.origins.loader_of(iterator)
            self._seen.setdefault(self._flow.origins.of(loader), (weights, num_examples))

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[FewDrawn]:
        """Yield the loaders whose sampler has fewer weights than there are examples."""
        for number, (weights, num_examples) in self._seen.items():
            made = [(file, call) for file in own_sources(_CLASS) for call in calls_named(file, _CLASS)]
            sampler = self.line_in(made[0][0], made[0][1].lineno) if len(made) == 1 else None
            yield FewDrawn(num_weights=weights, num_examples=num_examples, sampler=sampler, loader=frame_of(number))


def _sampler_in(frame: FrameType | None) -> WeightedRandomSampler | None:
    """Return the sampler that draws."""
    for _ in range(_FEW_FRAMES):
        made = None if frame is None else local_variables(frame).get("self")
        if frame is None or type(made) is WeightedRandomSampler:
            return made
        frame = frame.f_back
    return None


def _length(dataset: Any) -> int | None:
    """Return how many examples a dataset has, without code of the program; None if it is not known."""
    if type(dataset) is TensorDataset:
        return int(dataset.tensors[0].shape[0])
    held = dataset.indices if type(dataset) is Subset else dataset
    return len(held) if type(held) in (list, tuple) else None
