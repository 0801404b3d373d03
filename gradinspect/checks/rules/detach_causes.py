"""The ways in which a gradient's path is cut: what happens there, and what helps."""

from typing import NamedTuple

from gradinspect.checks.rules.value_flow import DetachCause


class DetachRemedy(NamedTuple):
    """What to say of one way; `{op}` is the operator, `{where}` its line, `{used}` the line that read the result."""

    why: str
    remedy: str
    title: str = ""


MANNERS: dict[DetachCause, DetachRemedy] = {
    "detach": DetachRemedy(
        "{op}() ends the way of every gradient.",
        "Leave out {op}() at {where}, if gradients are wanted there.",
    ),
    "data": DetachRemedy(
        ".data gives the values without their graph.",
        "Use the tensor itself in place of .data at {where}.",
    ),
    "copy": DetachRemedy(
        "{op}() copies values into a new tensor, which knows nothing of where they come from.",
        "At {where}, use torch.stack() or torch.cat() of the tensors, or the tensor itself.",
    ),
    "integer": DetachRemedy(
        "{op} gives whole numbers or truth values, and those have no gradient.",
        "At {where}, use something with a derivative, such as softmax in place of argmax, or a straight-through "
        "estimator: soft + (hard - soft).detach().",
    ),
    "grad_off": DetachRemedy(
        "Gradients were switched off while {op} ran, by no_grad, inference_mode or set_grad_enabled(False).",
        "Leave that away at {where}, where gradients are wanted.",
    ),
    "checkpoint": DetachRemedy(
        "A checkpoint with use_reentrant=True builds no graph unless one of its tensor inputs requires grad.",
        "Use use_reentrant=False at {where}.",
    ),
    "function": DetachRemedy(
        "It went through a custom Function whose result does not require grad.",
        "Look at the forward of the Function at {where}: mark_non_differentiable, or a result made without its input.",
    ),
    "python": DetachRemedy(
        "{op}() hands the value to Python or NumPy, and what comes back from there is a constant.",
        "Compute with tensors only, from {where} on.",
    ),
    "gradient": DetachRemedy(
        "The gradient computed there carries no graph, because create_graph=True is missing.",
        "Write create_graph=True at {where}.",
        title="a gradient that is used in a loss carries no graph",
    ),
    "assigned": DetachRemedy(
        "{op} writes the values where autograd does not look, into a leaf, .data or a detached tensor.",
        "Use the new tensor itself in place of writing it at {where}; for weights, torch.func.functional_call.",
    ),
    "rewrapped": DetachRemedy(
        "The tensor was wrapped again, by nn.Parameter or Variable, and that makes a new leaf without a history.",
        "Use the tensor that {where} made as it is.",
    ),
    "unknown": DetachRemedy(
        "The result of {op} does not require grad.",
        "Look at {where}: the operator has no derivative.",
    ),
}  # fmt: skip
SAMPLED = DetachRemedy(
    "sample() draws with gradients switched off.",
    "Use rsample() at {where} where the distribution has it, or log_prob() of the sample in the loss.",
)
