"""What is added up in a loss: gradients without a graph, terms that were detached, inputs of kl_div.

NOTE [Gradients on purpose]
Intentional uses are not reported: a gradient that updates the very tensor it belongs to (first-order MAML), that scales
another loss (adaptive weights), that moves an input (adversarial examples), or that went through `detach()`.

NOTE [Constant terms on purpose]
People add detached terms to a loss to log their sum, or to compare it with an earlier loss, and say so with detach() or
no_grad(). So these count only for a term made of parameters themselves, as weight decay is, and for one that detach()
cut off and a weight was multiplied with: neither has another purpose. Nor has what no_grad() cut off, if it was
reduced by a mean or a loss function as well: a value that is to be predicted is not. If the loss scales something else
by the same value, as the kernels of a discrepancy share a bandwidth, then that is its purpose. The logarithm of a
comparison is 0 or minus infinity: the support of a distribution, as in the log_prob() of a uniform one, and no count.

NOTE [Sampled on purpose]
A policy samples actions, and the loss has their log-probability: the sample is then an argument of log_prob() only. A
critic that is given the sample, or a decoder, shows that its gradient was to reach the distribution, if the same loss
trains that by another way, as by a divergence. Not so where the critic learns to predict, by an error that is squared,
nor where one sample leads to the next distribution: its gradient is that of the score function. What torch.normal()
returns has a graph, but a gradient of zero to the mean and the deviation: it is a sample like any other.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.facts.value_flow import (
    NO_LEAF,
    NORMAL,
    OUTSIDE,
    Call,
    Read,
    all_behind,
    ancestors,
    calls_behind,
)
from gradinspect.recording.transparency.own_errors import PassOver

_SUMS = frozenset(("add", "sub", "rsub", "radd", "iadd", "isub", "stack", "cat", "hstack", "vstack", "concat"))
_LINEAR = _SUMS | frozenset((
    "mul", "div", "true_divide", "neg", "mean", "sum", "squeeze", "reshape", "view", "flatten", "float", "to",
    "nanmean", "unsqueeze", "getitem",
))  # fmt: skip
_DETACHES = frozenset(("detach", "detach_", "data"))
_PRODUCTS = frozenset(("mul", "div", "true_divide"))
_RESIDUAL = frozenset((
    "pow", "square", "abs", "norm", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
))  # fmt: skip
ADDS = frozenset(("add", "sub", "rsub", "radd", "iadd", "isub"))
SCALAR = ADDS | frozenset(("mul", "rmul", "imul", "div", "truediv", "true_divide", "neg", "float", "to"))
_WEIGHTS = frozenset(("mul", "rmul", "imul"))
_REDUCTIONS = frozenset((
    "mean", "kl_div", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
))  # fmt: skip
_BY_MISTAKE = frozenset(("data", "copy", "integer"))
_LOGARITHMS = frozenset(("log", "log2", "log10"))
_DIVERGENCE_SUMS = frozenset((
    "add", "sub", "rsub", "radd", "iadd", "isub", "mul", "rmul", "imul", "div", "truediv", "true_divide", "neg",
    "float", "to", "sum", "mean", "stack", "squeeze",
))  # fmt: skip
_SAME_VALUES = frozenset((
    "view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "contiguous", "float", "to",
    "getitem",
))  # fmt: skip
PROBABILITIES = frozenset(("softmax", "sigmoid"))
_LAYERS = frozenset(("linear", "conv1d", "conv2d", "conv3d", "addmm", "baddbmm", "relu"))
_TAKES_SAMPLES = frozenset((
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "addmm", "matmul", "bmm", "einsum",
    "lstm", "gru", "rnn_tanh", "cat", "concat",
))  # fmt: skip
_JOINS = frozenset(("cat", "concat"))
_SHAPE_ONLY = frozenset(("size", "numel"))
_NORMAL = frozenset(("normal",))
MAX_DRAWS = 8  # that are looked at


class Term(NamedTuple):
    """A term of a loss: what it is made of, and the call that uses it."""

    made: int  # the call that computed the gradient, detached the term, or made the input
    used: int
    reduced: int | None = None  # the call that made one number of it


class _Drawn(NamedTuple):
    """A call with a graph reads a sample, perhaps through a layer."""

    reader: int
    draw: int
    layer: int | None


class _Step(NamedTuple):
    call: int
    is_linear: bool  # whether the loss is linear in what this call made


def lost_terms(calls: Sequence[Call], root: Read, is_trained: Callable[[int], bool]) -> Iterator[Term]:
    """Walk back from a loss over what is added up in it, as far as a gradient could, and look at what has no graph.

    NOTE [Gradients on purpose].

    Args:
        calls: In the order in which they were made.
        root: The loss.
        is_trained: Whether a leaf, of which a gradient was taken, is a parameter rather than an input.
    """
    if not root.leads_back or root.call == OUTSIDE:
        return
    todo, seen = [_Step(root.call, is_linear=True)], {root.call}
    while todo:
        step = todo.pop()
        call = calls[step.call]
        plain = call.name.strip("_")
        if plain not in _LINEAR | _RESIDUAL or (plain in _PRODUCTS and sum(read.is_live for read in call.reads) > 1):
            continue
        is_linear = step.is_linear and plain in _LINEAR
        if plain in _SUMS and any(read.is_live for read in call.reads):
            term = _term(calls, step.call, is_trained, is_linear=is_linear)
            if term is not None:
                yield term
        for read in call.reads:
            if read.leads_back and read.call != OUTSIDE and read.call not in seen:
                seen.add(read.call)
                todo.append(_Step(read.call, is_linear))


def _term(calls: Sequence[Call], used: int, is_trained: Callable[[int], bool], *, is_linear: bool) -> Term | None:
    others = [read for read in calls[used].reads if read.is_live]
    for read in calls[used].reads:
        if read.is_live or read.call == OUTSIDE:
            continue
        behind = ancestors(calls, read.call, stops_at_leaves=True)
        gradient = max((number for number in behind if calls[number].cause == "gradient"), default=None)
        if gradient is None or any(_is_same(other, one) for other in others for one in calls[gradient].wrt):
            continue
        is_on_purpose = any(calls[number].name in _DETACHES for number in behind if number > gradient)
        learned = _learned(calls, gradient, is_trained)
        is_known = not calls[gradient].is_attribute  # what a gradient read from `.grad` depends on is not
        is_part = _share_a_leaf(calls, learned, others) or _are_inputs(calls, gradient, others, is_trained)
        if (learned or not is_known) and (is_linear or (not is_on_purpose and is_part)):
            return Term(gradient, used)
    return None


def _is_same(first: Read, second: Read) -> bool:
    if first.leaf != NO_LEAF or second.leaf != NO_LEAF:
        return first.leaf == second.leaf
    return first.call == second.call != OUTSIDE


def _learned(calls: Sequence[Call], gradient: int, is_trained: Callable[[int], bool]) -> set[int]:
    """Collect the leaves that a gradient depends on and that may learn: not the input that it belongs to."""
    inputs = {one.leaf for one in calls[gradient].wrt}
    behind = _leaves(calls, ancestors(calls, gradient, stops_at_leaves=True))
    return {leaf for leaf in behind if leaf not in inputs or is_trained(leaf)}


def _share_a_leaf(calls: Sequence[Call], learned: set[int], others: Sequence[Read]) -> bool:
    """Return whether a gradient was taken in the same network that the rest comes from."""
    return any(learned & _leaves(calls, ancestors(calls, other.call, stops_at_leaves=True)) for other in others)


def _are_inputs(
    calls: Sequence[Call], gradient: int, others: Sequence[Read], is_trained: Callable[[int], bool]
) -> bool:
    """Return whether nothing else in a residual has a graph but what the gradient was taken by, such as a time."""
    inputs = {one.leaf for one in calls[gradient].wrt if one.leaf != NO_LEAF and not is_trained(one.leaf)}
    behind = [_leaves(calls, ancestors(calls, other.call, stops_at_leaves=True)) for other in others]
    return bool(inputs) and all(leaves and leaves <= inputs for leaves in behind)


def _leaves(calls: Sequence[Call], numbers: set[int]) -> set[int]:
    return {read.leaf for number in numbers for read in calls[number].reads if read.leaf != NO_LEAF and read.is_live}


def constant_terms(calls: Sequence[Call], root: Read) -> Iterator[Term]:
    """Walk back from a scalar loss over what is added up in it. NOTE [Constant terms on purpose]."""
    for number in calls_behind(calls, root, SCALAR):
        if calls[number].name.strip("_") not in ADDS:
            continue
        for read in calls[number].reads:
            cut, reduced = (None, None) if read.is_live else _detached(calls, read.call)
            if cut is None or _scales_gradient(calls, number, cut):
                continue
            if not (calls[cut].is_off and _scales_another(calls, root, cut)):
                yield Term(cut, number, reduced)


def _scales_gradient(calls: Sequence[Call], total: int, cut: int) -> bool:
    """Return whether a sum adds a tensor to itself without its graph: `x * s + x.detach() * (1 - s)`."""
    live = [read.call for read in calls[total].reads if read.is_live and read.call != OUTSIDE]
    scaled = [read.call for one in live if calls[one].name.strip("_") in _WEIGHTS for read in calls[one].reads]
    return any(read.call in (*live, *scaled) for read in calls[cut].reads if read.call != OUTSIDE)


def _scales_another(calls: Sequence[Call], root: Read, cut: int) -> bool:
    """Return whether what was cut off is read together with something live other than by adding it."""
    given = (
        read.call
        for number in all_behind(calls, root, frozenset())
        if calls[number].name.strip("_") not in ADDS
        for read in calls[number].reads
        if not read.is_live and read.call > OUTSIDE
    )
    return any(cut in ancestors(calls, one) for one in set(given))


def _detached(calls: Sequence[Call], number: int) -> tuple[int | None, int | None]:
    """Find the first call that detached a term; None if that may be on purpose, or another rule explains it."""
    todo, seen, cuts, is_weighted = [number], {OUTSIDE}, [], False
    reduced: int | None = None
    supports: set[int] = set()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        if calls[one].cause is None:
            reduced = one if reduced is None and calls[one].name in _REDUCTIONS else reduced
            is_weighted = is_weighted or (calls[one].name.strip("_") in _WEIGHTS and len(calls[one].reads) == 1)
            behind = [read.call for read in calls[one].reads if read.leaf == NO_LEAF]
            supports.update(behind if one in supports or calls[one].name in _LOGARITHMS else ())
            todo += behind
        else:
            cuts.append(one)
    if any(one in supports and calls[one].cause == "integer" for one in cuts):
        return None, None
    is_term = is_weighted and reduced is not None
    is_meant = any(not _is_by_mistake(calls[one], is_weighted=is_weighted, is_term=is_term) for one in cuts)
    return (min(cuts), reduced) if cuts and not is_meant else (None, None)


def _is_by_mistake(call: Call, *, is_weighted: bool, is_term: bool) -> bool:
    if call.is_off:
        return is_term and call.cause == "grad_off"
    is_own = is_weighted or any(read.leaf != NO_LEAF for read in call.reads)
    return call.cause in _BY_MISTAKE or (call.cause == "detach" and is_own)


def sampled_inputs(calls: Sequence[Call], root: Read, pass_over: PassOver) -> Iterator[Term]:
    """Find a layer on the way to a loss that is given what a distribution sampled. NOTE [Sampled on purpose].

    Args:
        calls: In the order in which they were made.
        root: The loss.
        pass_over: Counts the samples that are not looked at.
    """
    live = all_behind(calls, root, _NORMAL)
    read = [_Drawn(number, *one) for number in sorted(live) for one in _drawn(calls, number)]
    into_layers = [one for one in read if one.layer is not None]
    scored = {one.draw for one in read if one.layer is None}
    direct = all_behind(calls, root, _RESIDUAL) if into_layers else set()
    for one in into_layers[:MAX_DRAWS]:
        is_term = one.layer == one.reader or calls[one.reader].name.strip("_") in ADDS
        is_direct = one.reader in direct and not _leads_to_another(calls, one.reader, one.draw)
        is_path = is_direct or not (one.draw in scored or one.layer != one.reader)
        if is_term and is_path and not live.isdisjoint(ancestors(calls, one.draw)):
            yield Term(one.draw, one.layer or one.reader)
            return
    if len(into_layers) > MAX_DRAWS:
        why = f"after the first {MAX_DRAWS} of a loss"
        pass_over("sample that a layer is given", why, len(into_layers) - MAX_DRAWS)


def _drawn(calls: Sequence[Call], number: int) -> Iterator[tuple[int, int | None]]:
    """Yield the samples that a call reads, after functions without a graph, and the layer among these, if any."""
    first = number if calls[number].name in _TAKES_SAMPLES else None
    todo, seen = [(read.call, first) for read in calls[number].reads if not read.is_live], {OUTSIDE}
    made = (_made(calls, read) for read in calls[number].reads if read.leads_back)
    if calls[number].name not in _SAME_VALUES:  # who reads its result is asked, too
        yield from ((one, first) for one in made if _is_normal(calls, one))
    while todo:
        one, layer = todo.pop()
        if one in seen or calls[one].name in _SHAPE_ONLY:
            continue
        seen.add(one)
        if calls[one].cause == "sample":
            yield one, layer
        elif calls[one].cause == "detach":
            yield from ((read.call, layer) for read in calls[one].reads if _is_normal(calls, read.call))
        elif calls[one].cause is None:
            is_layer = layer is None and calls[one].name in _TAKES_SAMPLES - _JOINS
            todo += [(read.call, one if is_layer else layer) for read in calls[one].reads if not read.is_live]


def _is_normal(calls: Sequence[Call], number: int) -> bool:
    return number != OUTSIDE and calls[number].op == NORMAL


def _leads_to_another(calls: Sequence[Call], number: int, draw: int) -> bool:
    later = (one for one in range(number, len(calls)) if one != draw and calls[one].cause == "sample")
    return any(number in ancestors(calls, one, stops_at_leaves=True) for one in later)


def divergence_inputs(calls: Sequence[Call], root: Read) -> Iterator[Term]:
    """Walk back from a loss over what is added up in it, and look at each kl_div."""
    for number in calls_behind(calls, root, _DIVERGENCE_SUMS):
        call = calls[number]
        made = _made(calls, call.reads[0]) if call.name == "kl_div" and call.reads else OUTSIDE
        if made != OUTSIDE and calls[made].name in PROBABILITIES | _LAYERS:
            yield Term(made, number)


def _made(calls: Sequence[Call], read: Read) -> int:
    while read.call != OUTSIDE and calls[read.call].name in _SAME_VALUES and calls[read.call].reads:
        read = calls[read.call].reads[0]
    return read.call
