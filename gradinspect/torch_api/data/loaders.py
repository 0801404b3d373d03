"""Which batch the iterator of a DataLoader is making, read from its attributes."""

from typing import Any, NamedTuple

from torch.utils.data import BatchSampler, SequentialSampler

from gradinspect.torch_api.probes import private

_CLASS = "torch.utils.data.dataloader._BaseDataLoaderIter"
_LOST = "a batch that is drawn again and again is not found"
_NEXT = private(f"{_CLASS}.__next__", _LOST, is_rare=True)
_NUM_YIELDED = private(f"{_CLASS}:_num_yielded", _LOST, is_rare=True)
_SAMPLER = private(f"{_CLASS}:_index_sampler", _LOST, is_rare=True)
_DATASET = private(f"{_CLASS}:_dataset", "a sampler that never draws most examples is not found", is_rare=True)
NEXT_BATCH = getattr(_NEXT.or_else(None), "__code__", None)  # runs while a batch is made


class BatchPlace(NamedTuple):
    """The place of a batch among those that an iterator gives in an order that is the same each time."""

    number: int  # how many came before
    num_batches: int


def batch_place(iterator: Any) -> BatchPlace | None:
    """Return the place of the batch that an iterator is making; None if the order is drawn, or not known."""
    sampler: Any = getattr(iterator, _SAMPLER.or_else("__class__"), None)
    number: Any = getattr(iterator, _NUM_YIELDED.or_else("__class__"), None)
    if type(sampler) is not BatchSampler or type(sampler.sampler) is not SequentialSampler:
        return None
    return BatchPlace(number, len(sampler)) if isinstance(number, int) else None


def batches_of(iterator: Any) -> Any:
    """Return what an iterator takes the indices of each batch from: the sampler of its loader."""
    return getattr(iterator, _SAMPLER.or_else("__class__"), None)


def dataset_of(iterator: Any) -> Any:
    """Return what an iterator takes examples from."""
    return getattr(iterator, _DATASET.or_else("__class__"), None)


def sampler_of(iterator: Any) -> object:
    """Return the sampler that orders the examples of an iterator, or what else orders them."""
    batches = batches_of(iterator)
    return getattr(batches, "sampler", batches)
