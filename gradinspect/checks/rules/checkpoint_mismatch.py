"""A checkpointed block that does something else when backward runs it again: the operator and line of both runs."""

from collections.abc import Iterator, Sequence

from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.graph import Frame, Record, TensorInfo
from gradinspect.units import format_count, format_tensor


class KeptTensor(Record, frozen=True, kw_only=True):
    """A tensor that an operator inside a checkpointed block saved."""

    info: TensorInfo
    op: str | None  # "relu", as the program calls it
    frame: Frame | None


class Mismatch(Record, frozen=True, kw_only=True):
    """The first tensor at which two runs of one block part."""

    position: int
    first: KeptTensor | None  # None: the first run had ended
    again: KeptTensor | None
    num_first: int  # tensors that the first run saved
    num_again: int

    @property
    def is_refused(self) -> bool:
        """Whether torch sees it as well: it compares the number of tensors, and their shapes and dtypes."""
        if self.num_first != self.num_again or self.first is None or self.again is None:
            return True
        return self.first.info != self.again.info


def checkpoint_findings(mismatches: Sequence[Mismatch], backward: Frame | None) -> Iterator[Finding]:
    """Make a finding of each block that was not the same twice."""
    for mismatch in mismatches:
        first, again = mismatch.first, mismatch.again
        yield Finding(
            code="GI104",
            title="a checkpointed block did something else the second time",
            text=_why(mismatch),
            places=(
                *place_of("first", None if first is None else first.frame),
                *place_of("again", None if again is None else again.frame),
                *place_of("backward", backward),
            ),
            remedy=_remedy(mismatch),
        )


def _why(mismatch: Mismatch) -> str:
    counts = ""
    if mismatch.num_first != mismatch.num_again:
        again = format_count(mismatch.num_again, "tensor")
        counts = f" {format_count(mismatch.num_first, 'tensor')} the first time, {again} the second time."
    end = (
        "torch will refuse this backward."
        if mismatch.is_refused
        else "Shapes and dtypes are the same, so torch does not notice: gradients will be wrong."
    )
    return (
        f"At position {mismatch.position} the block saved {_kept(mismatch.first)}; when backward ran it again, "
        f"{_kept(mismatch.again)}.{counts} {end}"
    )


def _kept(kept: KeptTensor | None) -> str:
    if kept is None:
        return "nothing more"
    return format_tensor(kept.info) + ("" if kept.op is None else f" for {kept.op}")


def _remedy(mismatch: Mismatch) -> str:
    first, again = mismatch.first, mismatch.again
    if first is not None and again is not None and line_of(first.frame) == line_of(again.frame):
        if first.info.dtype != again.info.dtype:
            return (
                f"Fix the dtype at {line_of(again.frame)}: use autocast or the cast inside the block, and only there."
            )
        return (
            f"Find out why {line_of(again.frame)} meets another tensor the second time, such as a cache that the "
            "block adds to or a length drawn at random, and keep that out of the block."
        )
    known = line_of((again or first or _NOTHING).frame)
    return (
        f"Take the decision that leads to {known} before the block and hand it in: a flag, a counter or a random "
        "number may have changed when backward runs the block again."
    )


_NOTHING = KeptTensor(info=TensorInfo(shape=(), dtype="float32"), op=None, frame=None)
