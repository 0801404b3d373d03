"""A checkpointed block whose recomputation differs from its forward pass: the operator and line of both runs."""

from collections.abc import Iterator

from gradinspect.checks.facts.backward_calls import UnequalRuns
from gradinspect.checks.facts.graphs import KeptTensor, Mismatch, Redrawn
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.graph import Frame, TensorInfo
from gradinspect.units import format_count, format_tensor

MISMATCH = Rule(
    code="GI104",
    title="non-deterministic checkpoint recomputation",
    summary="A checkpointed block saved different tensors when backward recomputed it.",
    explanation="checkpoint() keeps only the inputs of a block, and backward runs the block again to recompute the "
    "rest. Both runs must save the same tensors, or backward feeds the wrong ones to its formulas. torch compares "
    "their number, shapes and dtypes and reports 'tensor at position 46'; gradinspect names the operator and the "
    "line where the runs first differ, which is often earlier. It also compares lines, so it finds two branches "
    "that save tensors of the same shape, which torch does not notice, and a block that draws random numbers with "
    "preserve_rng_state=False. Blocks with use_reentrant=True are not "
    "compared.",
    change="""\
  import torch
  from torch.utils.checkpoint import checkpoint

  x = torch.randn(3, requires_grad=True)
  runs = []


- def block(x):
-     runs.append(x.shape)
-     if len(runs) == 1:  # different in the recomputation
+ def block(x, is_first):
+     if is_first:
          return x.sin().exp()
      return x.cos().exp()


- checkpoint(block, x, use_reentrant=False).sum().backward()
+ checkpoint(block, x, not runs, use_reentrant=False).sum().backward()
""",
    remedy="Draw random numbers, count and decide before the block, and pass the result as an argument. "
    "checkpoint() itself restores torch's random state.",
)


def checkpoint_findings(runs: UnequalRuns) -> Iterator[Finding]:
    """Report a block whose two runs differ."""
    mismatch, backward = runs
    if isinstance(mismatch, Redrawn):
        yield _redrawn(mismatch, backward)
        return
    first, again = mismatch.first, mismatch.again
    yield MISMATCH.finding(
        text=_why(mismatch),
        places=(
            *place_of("decision", mismatch.decided),
            *place_of("first", None if first is None else first.frame),
            *place_of("again", None if again is None else again.frame),
            *place_of("backward", backward),
        ),
        remedy=_remedy(mismatch),
    )


JUDGE = Judge(UnequalRuns, checkpoint_findings)


def _redrawn(block: Redrawn, backward: Frame | None) -> Finding:
    where = line_of(block.frame)
    return MISMATCH.finding(
        text=f"The block at {where} draws random numbers, as dropout does, and preserve_rng_state=False lets its "
        "recomputation draw others. There is no error: gradients belong to another mask than the loss.",
        places=(*place_of("block", block.frame), *place_of("backward", backward)),
        remedy=f"Remove preserve_rng_state=False at {where}.",
    )


def _why(mismatch: Mismatch) -> str:
    counts = ""
    if mismatch.num_first != mismatch.num_again:
        first = format_count(mismatch.num_first, "tensor")
        counts = f" It saved {first} in the forward pass and {mismatch.num_again:,} in the recomputation."
    end = (
        "This backward will fail."
        if mismatch.is_refused
        else "Shapes and dtypes agree, so torch does not notice, and gradients will be wrong."
    )
    return (
        f"At position {mismatch.position} the block saved {_kept(mismatch.first)} in the forward pass, but "
        f"{_kept(mismatch.again)} in the recomputation.{counts} {end}"
    )


def _kept(kept: KeptTensor | None) -> str:
    if kept is None:
        return "nothing more"
    return format_tensor(kept.info) + ("" if kept.op is None else f" for {kept.op}")


def _remedy(mismatch: Mismatch) -> str:
    first, again = mismatch.first, mismatch.again
    if mismatch.decided is not None:
        return (
            f"Do what {line_of(mismatch.decided)} does before the block, and pass its result in: a flag, a counter, a "
            "cache or a random number may have changed by the time of the recomputation."
        )
    if first is not None and again is not None and line_of(first.frame) == line_of(again.frame):
        if first.info.dtype != again.info.dtype:
            return f"Fix the dtype at {line_of(again.frame)}: use autocast or the cast only inside the block."
        return (
            f"Why does {line_of(again.frame)} get a different tensor in the recomputation: from a cache that the block "
            "adds to, or of a length that is drawn at random? Do that before the block, and pass the result in."
        )
    known = line_of((again or first or _NOTHING).frame)
    return (
        f"Make the decision that leads to {known} before the block and pass it in: a flag, a counter or a random "
        "number may have changed by the time of the recomputation."
    )


_NOTHING = KeptTensor(info=TensorInfo(shape=(), dtype="float32"), op=None, frame=None)
