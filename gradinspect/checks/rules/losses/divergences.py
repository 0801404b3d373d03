"""What goes into kl_div, which torch computes from smaller operators: only its call shows what it was given."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read, calls_behind
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rules.losses.loss_inputs import NOT_LOG
from gradinspect.graph import Frame

_SUMS = frozenset((
    "add", "sub", "rsub", "radd", "iadd", "isub", "mul", "rmul", "imul", "div", "truediv", "true_divide", "neg",
    "float", "to", "sum", "mean", "stack", "squeeze",
))  # fmt: skip
_SAME_VALUES = frozenset((
    "view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "contiguous", "float", "to",
    "getitem",
))  # fmt: skip
_PROBABILITIES = frozenset(("softmax", "sigmoid"))
_LAYERS = frozenset(("linear", "conv1d", "conv2d", "conv3d", "addmm", "baddbmm", "relu"))


class WrongInput(NamedTuple):
    """A kl_div whose first argument is made of probabilities, or is the output of a layer."""

    made: int  # the call that made them
    used: int  # the call of kl_div


def wrong_inputs(calls: Sequence[Call], root: Read) -> Iterator[WrongInput]:
    """Walk back from a loss over what is added up in it, and look at each kl_div."""
    for number in calls_behind(calls, root, _SUMS):
        call = calls[number]
        made = _made(calls, call.reads[0]) if call.name == "kl_div" and call.reads else OUTSIDE
        if made != OUTSIDE and calls[made].name in _PROBABILITIES | _LAYERS:
            yield WrongInput(made, number)


def wrong_input_finding(
    calls: Sequence[Call], wrong: WrongInput, lines: tuple[Frame | None, Frame | None], backward: Frame | None
) -> Finding:
    """Make the finding for a kl_div.

    Args:
        calls: All calls.
        wrong: The kl_div.
        lines: Where its input was made, and where it is called.
        backward: The line of the backward call.
    """
    kind = calls[wrong.made].name
    made, used = lines
    text = (
        f"kl_div received the output of {kind} as its first argument: probabilities, not their logarithms. It is no "
        "distance then, can be negative, and pulls every output in one direction."
    )
    remedy = (
        f"Replace {kind} at {line_of(made)} by {'logsigmoid' if kind == 'sigmoid' else 'log_softmax'}. The second "
        "argument stays as it is."
    )
    if kind in _LAYERS:
        text = (
            f"kl_div received the output of {kind} as its first argument, which is not made of log-probabilities: the "
            "loss falls without end as the scores grow."
        )
        remedy = f"Apply log_softmax to the first argument at {line_of(used)}."
    return NOT_LOG.finding(
        text=text,
        places=(*place_of("applied", None if made == used else made), *place_of("loss", used),
                *place_of("backward", backward)),
        remedy=remedy,
    )  # fmt: skip


def _made(calls: Sequence[Call], read: Read) -> int:
    while read.call != OUTSIDE and calls[read.call].name in _SAME_VALUES and calls[read.call].reads:
        read = calls[read.call].reads[0]
    return read.call
