"""Losses of a policy that make what was rewarded less likely, as their minus is missing.

NOTE [The sign of a reward]
A policy learns by -log_prob * reward: an optimizer makes its loss smaller, so without the minus it makes less likely
what was rewarded. A cost has no minus, and numbers do not say which of the two they are; but a program that calls
something a reward, a return or an advantage wants more of it. So the factor must be called so where it is multiplied,
and nothing on its way may turn it around. A factor that is a number of Python may be negative: nothing is said of it.
The ratio to an earlier policy, exp(log_prob - before), grows with the log-probability, also if it is clipped.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.evidence.objectives.regressions import PRODUCTS
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read, ancestors
from gradinspect.checks.rewriting import statements_of

_SAME_SIGN = frozenset((
    "mean", "sum", "stack", "cat", "squeeze", "unsqueeze", "view", "reshape", "flatten", "getitem", "add", "radd",
    "iadd", "div", "truediv", "true_divide", "clone", "nanmean", "min", "minimum", "max", "maximum", "clamp", "clip",
))  # fmt: skip
_REDUCTIONS = frozenset(("mean", "sum", "nanmean"))
_GROWS = _SAME_SIGN | frozenset(("exp",))
_NEGATES = frozenset(("neg", "negative"))
_TURNS = _NEGATES | {"sub", "rsub"}
_REWARDS = ("reward", "return", "advantage")
_SHORT = frozenset(("adv", "advs", "rew", "rews"))
_SCORING = ".log_prob("


class Rewarded(NamedTuple):
    """A product of a log-probability and a reward that a loss has without a minus."""

    number: int  # the call; of a ratio, the one that takes the mean
    factor: str  # as the program writes it
    is_ratio: bool = False  # to the probability under an earlier policy


def rewarded_losses(calls: Sequence[Call], root: Read, code_of: Callable[[int], str]) -> Iterator[Rewarded]:
    """Find the products of a log-probability and a reward. NOTE [The sign of a reward].

    Args:
        calls: In the order in which they were made.
        root: The loss.
        code_of: The line of the program that made a call.
    """
    found = dict[Rewarded, None]()  # products of one mean are one mistake
    for product in _products(calls, root):
        first, second = calls[product.number].reads
        score, reward = (first, second) if first.is_live else (second, first)
        factor = _factor(code_of(product.number))
        if factor is None or _is_turned(calls, reward, code_of):
            continue
        inner = _score(calls, score, code_of)
        if inner is not None and product.sign * inner.sign > 0:
            found[Rewarded(product.mean if inner.is_ratio else product.number, factor, inner.is_ratio)] = None
    yield from found


class _Product(NamedTuple):
    """A product, and how a loss has it."""

    number: int
    sign: int
    mean: int  # the call that takes its mean or its sum; if there is none, the product


class _Score(NamedTuple):
    """How a product has a log-probability."""

    sign: int
    is_ratio: bool


def _products(calls: Sequence[Call], root: Read) -> Iterator[_Product]:
    """Yield the products of something with a graph and something without."""
    todo, seen = [(root, 1, OUTSIDE)], {OUTSIDE}
    while todo:
        read, sign, mean = todo.pop()
        if not read.leads_back or read.call in seen:
            continue
        seen.add(read.call)
        call = calls[read.call]
        name = call.name.strip("_")
        mean = read.call if name in _REDUCTIONS else mean
        if name in PRODUCTS and len(call.reads) == 2:
            if {one.is_live for one in call.reads} == {True, False}:
                yield _Product(read.call, sign, read.call if mean == OUTSIDE else mean)
        elif name in _NEGATES | {"sub"}:
            todo += [(one, sign if name == "sub" and place == 0 else -sign, mean)
                     for place, one in enumerate(call.reads)]  # fmt: skip
        elif name in _SAME_SIGN:
            todo += [(one, sign, mean) for one in call.reads]


def _score(calls: Sequence[Call], read: Read, code_of: Callable[[int], str]) -> _Score | None:
    """Return how a product has a log-probability; None if it has none, or its sign is not known.

    Some distributions compute a log-probability as the negative of something, on the line that asks for it: there, only
    a minus that the program writes counts, once.
    """
    sign, is_ratio = 1, False
    while read.leads_back and read.call != OUTSIDE:
        call, code = calls[read.call], code_of(read.call)
        name = call.name.strip("_")
        if _SCORING in code:
            minus = _minus(code) if name in _NEGATES else 1
            return None if minus is None else _Score(sign * minus, is_ratio)
        live = [place for place, one in enumerate(call.reads) if one.leads_back]
        if name in _NEGATES or (name == "sub" and live == [1]):
            sign = -sign
        elif name not in _GROWS and (name != "sub" or live != [0]):
            return None
        is_ratio = is_ratio or name == "exp"
        read = call.reads[live[0]] if live else Read()
    return None


def _minus(code: str) -> int | None:
    """Return -1 if a line negates a log-probability itself: `-dist.log_prob(a) * reward`; None if that is not clear."""
    parts = _parts(code)
    if not parts or code.count(_SCORING) > 1:
        return None
    is_negated = any(
        isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) and _SCORING in ast.unparse(part.operand)
        for part in parts
    )
    return -1 if is_negated else 1


def _factor(code: str) -> str | None:
    """Return the factor on a line that is called a reward, if there is one, and no minus before it."""
    for part in _parts(code):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
            for one in (part.left, part.right):
                if isinstance(one, ast.Name | ast.Attribute | ast.Subscript) and _is_reward(one):
                    return ast.unparse(one)
    return None


def _is_turned(calls: Sequence[Call], reward: Read, code_of: Callable[[int], str]) -> bool:
    """Return whether a reward was negated on its way, or subtracted from something."""
    turning = (one for one in ancestors(calls, reward.call) if calls[one].name.strip("_") in _TURNS)
    for part in (part for one in turning for part in _parts(code_of(one))):
        is_negated = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) and _is_reward(part.operand)
        is_subtracted = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and _is_reward(part.right)
        if is_negated or (is_subtracted and not _is_reward_less_its_mean(part)):
            return True
    return False


def _is_reward_less_its_mean(part: ast.AST) -> bool:
    """Return whether a difference is one of two rewards: `returns - returns.mean()`."""
    return isinstance(part, ast.BinOp) and _is_reward(part.left)


def _is_reward(node: ast.expr) -> bool:
    names = [one.id if isinstance(one, ast.Name) else one.attr for one in ast.walk(node)
             if isinstance(one, ast.Name | ast.Attribute)]  # fmt: skip
    return any(name.lower() in _SHORT or any(word in name.lower() for word in _REWARDS) for name in names)


def _parts(code: str) -> list[ast.AST]:
    return [part for one in statements_of(code) for part in ast.walk(one)]
