"""The error of torch that ended the program, where no other rule explains it."""

import re
from collections.abc import Iterator

from gradinspect.checks.facts.failures import FailedCall, FailedIterator, FailedTensor, MisfitState, SharedParameter
from gradinspect.checks.findings import Finding, Place, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.failure_remedies import known_remedy
from gradinspect.graph import Frame

FAILED = Rule(
    code="GI001",
    title="torch refused a call",
    summary="The program ended with an error of torch: which tensors its statement names, and what they are.",
    explanation="torch names shapes, dtypes and devices, but neither variables nor the lines that made them. "
    "gradinspect lists each tensor that the failed statement names with its dtype, shape and device, and the line "
    "of the operator that made it. A leaf that requires grad cannot be written to while gradients are recorded: "
    "torch.no_grad() is needed. A gradient that no backward call has left is None, which Python refuses to compute "
    "with, and copy.deepcopy() refuses a result with a graph. What helps is said for the errors that people ask about "
    "most; for the others the facts are listed, and the question that decides. Reported only if no other rule names "
    "the line that failed.",
    change="""\
  import torch

  weight = torch.zeros(3, requires_grad=True)
  x = torch.randn(5, 3)
  for _ in range(2):
      loss = (x @ weight - 1).square().mean()
      loss.backward()
-     weight -= 0.1 * weight.grad  # of a leaf, while gradients are recorded
-     weight.grad = None
+     with torch.no_grad():
+         weight -= 0.1 * weight.grad
+     weight.grad = None
""",
    remedy="Compare what the finding lists with what the call expects.",
)
_INFERENCE = "Inference tensors cannot be saved"
_LEAF = "a leaf Variable that requires grad"
_MAKES_LAYER = re.compile(r"\b[Mm]ake the (?:layer|batch norm|embedding)")
_NAMES_LOADER = re.compile(r"\b(?:DataLoader|collate_fn)\b")
_SHAPES = re.compile(r"size|shape|dimension|broadcast|element|channel|match|length|\bdims?\b", re.IGNORECASE)


def failure_findings(fact: FailedCall) -> Iterator[Finding]:
    """List what the tensors of the failed statement are."""
    tensors = [one for one in fact.tensors if one.is_trained_leaf] if _is_leaf_write(fact) else fact.tensors
    remedy = " ".join(map(_as_list, fact.iterators)) or _remedy(fact)
    yield FAILED.finding(
        text=" ".join(
            (
                f"{'Python' if fact.lacks_gradient else 'torch'} says: {fact.error}.",
                *([f"It was raised in {fact.layer}."] if fact.layer else []),
                *map(_in_two_groups, fact.shared),
                *([] if fact.misfit is None else [_of_another(fact.misfit)]),
                *(_described(one, fact) for one in tensors),
                *(f"{one.name}.grad is None: no backward call has left a gradient there." for one in _empty(fact)),
                *(_used_up(one) for one in fact.iterators),
            )
        ),
        places=(
            *(place for one in fact.iterators for place in place_of("made", one.made)),
            *_inference(fact),
            *(place for line in _sparse_lines(fact) for place in place_of("sparse", line)),
            *place_of("optimizer", fact.created),
            *place_of("scheduler", fact.schedule),
            *place_of("loader", fact.loader if _NAMES_LOADER.search(remedy) else None),
            *place_of("created", fact.layer_made if _MAKES_LAYER.search(remedy) else None),
            *place_of("failed", fact.frame, fact.called),
        ),
        remedy=remedy,
        subjects=tuple(one.name for one in (*tensors, *fact.iterators)),
    )


JUDGE = Judge(FailedCall, failure_findings)


def _inference(fact: FailedCall) -> tuple[Place, ...]:
    """Return the line of the scope that made the inference tensor that torch refuses."""
    off = next((one.off for one in fact.tensors if one.off is not None), None)
    return place_of("off", off) if _INFERENCE in fact.error else ()


def _sparse_lines(fact: FailedCall) -> list[Frame]:
    """List the lines that made the parameters with a sparse gradient."""
    return list(dict.fromkeys(one.made for one in fact.tensors if one.has_sparse_gradient and one.made is not None))


def _is_leaf_write(fact: FailedCall) -> bool:
    return _LEAF in fact.error and any(one.is_trained_leaf for one in fact.tensors)


def _described(one: FailedTensor, fact: FailedCall) -> str:
    device = f" on {one.device}" if len({each.device for each in fact.tensors}) > 1 else ""
    made = "" if one.made is None or one.made == fact.frame else f", made at {line_of(one.made)}"
    leaf = ", a leaf that requires grad" if _is_leaf_write(fact) else ""
    leaf += ", and its gradient is sparse" if one.has_sparse_gradient else ""
    name = one.name[:1].upper() + one.name[1:] if one.is_argument else one.name
    least, greatest = one.extremes or (None, None)
    span = "" if least is None else f", of {least:,} only" if least == greatest else f", from {least:,} to {greatest:,}"
    return f"{name} is {one.dtype} {list(one.shape)}{span}{device}{leaf}{made}."


def _used_up(one: FailedIterator) -> str:
    return (
        f"{one.name} = {one.value} at {line_of(one.made)} can be gone through once. {line_of(one.read)} reads it "
        "before, so nothing was left here."
    )


def _in_two_groups(one: SharedParameter) -> str:
    first, *others = one.names or ("A parameter",)
    tied = f", which is also {listed(others)}," if others else ""
    return f"{first}{tied} is in the groups {one.groups[0]} and {one.groups[1]}."


def _of_another(one: MisfitState) -> str:
    name = one.name or "A parameter of the optimizer"
    return f"{name} is {list(one.shape)}, and the optimizer has a state of {list(one.state)} for it."


def _as_list(one: FailedIterator) -> str:
    return f"Write {one.name} = list({one.value}) at {line_of(one.made)}."


def _empty(fact: FailedCall) -> tuple[FailedTensor, ...]:
    return fact.tensors if fact.lacks_gradient else ()


def _remedy(fact: FailedCall) -> str:
    where = line_of(fact.frame)
    if fact.lacks_gradient:
        (one, *_) = fact.tensors
        return f"Call backward() of the loss before {where}, or skip {one.name} there while {one.name}.grad is None."
    if fact.refuses_copy:
        (one, *_) = fact.tensors
        return f"Before {where}, write {one.name} = {one.name}.detach(): what has a graph is not copied."
    if _LEAF in fact.error:
        return f"Put {where} into 'with torch.no_grad():', so that the write is not recorded."
    if any(one.has_sparse_gradient for one in fact.tensors):
        lines = [line_of(line) for line in _sparse_lines(fact)]
        at = f"at {listed(lines)}" if lines else "from their embeddings"
        return (
            f"Remove sparse=True {at}. Or pass these parameters to "
            "torch.optim.SparseAdam, and all others to the optimizer that there is."
        )
    return _of_parameters(fact) or known_remedy(fact) or _asked(fact)


def _of_parameters(fact: FailedCall) -> str:
    if fact.misfit is not None:
        return (
            "The optimizer was loaded with the state of other parameters, or in another order: make the layers in the "
            "order that they had when it was saved, or let it start without that state."
        )
    for one in fact.shared:
        return f"Leave {one.names[0] if one.names else 'it'} out of one of the two groups: it is one tensor."
    for name, kind in fact.unregistered:
        return f"Make {name} an nn.{kind}: what a list or dict holds is not registered."
    return ""


def _asked(fact: FailedCall) -> str:
    """Ask what decides: only the program knows which of two is meant."""
    if len({one.device for one in fact.tensors}) > 1:
        return "Which device is meant? Make the others there, or move them with to(device)."
    if len({one.dtype for one in fact.tensors}) > 1 and "dtype" in fact.error.lower().replace("scalar type", "dtype"):
        return "Which dtype is meant? Convert the others on the lines that made them."
    if not fact.tensors or not _SHAPES.search(fact.error):
        return "What does this line pass, and what does torch say that it expects?"
    return "Which of these shapes is not the one you expect? Follow it back from the line that made it."
