"""The ways in which a tensor is detached from its graph: what happens there, and what helps."""

from typing import NamedTuple

from gradinspect.checks.rules.value_flow import DetachCause


class DetachRemedy(NamedTuple):
    """What to say of one cause; `{op}` is the operator, `{where}` its line, `{used}` the line that read the result."""

    why: str
    remedy: str


DETACH_REMEDIES: dict[DetachCause, DetachRemedy] = {
    "detach": DetachRemedy(
        "{op}() stops gradient flow.",
        "Remove {op}() at {where} if this path should train.",
    ),
    "data": DetachRemedy(
        ".data returns the values without their graph.",
        "Use the tensor itself instead of .data at {where}.",
    ),
    "copy": DetachRemedy(
        "{op}() copies values into a new tensor without a graph.",
        "At {where}, use torch.stack() or torch.cat() on the tensors, or the tensor itself.",
    ),
    "integer": DetachRemedy(
        "{op} returns integers or booleans, which have no gradient.",
        "At {where}, use something differentiable, such as softmax instead of argmax, or a straight-through estimator: "
        "soft + (hard - soft).detach().",
    ),
    "grad_off": DetachRemedy(
        "{op} ran with gradients disabled, by no_grad, inference_mode or set_grad_enabled(False).",
        "Enable gradients at {where} if this path should train.",
    ),
    "checkpoint": DetachRemedy(
        "A checkpoint with use_reentrant=True builds no graph unless one of its tensor inputs requires grad.",
        "Use use_reentrant=False at {where}.",
    ),
    "function": DetachRemedy(
        "It went through a custom Function whose result does not require grad.",
        "Check the forward of the Function at {where} for mark_non_differentiable, or a result that does not depend on "
        "its input.",
    ),
    "python": DetachRemedy(
        "{op}() converts the value to Python or NumPy, and what is computed from it there is a constant.",
        "Use tensor operations only, from {where} on.",
    ),
    "gradient": DetachRemedy(
        "The gradient computed there has no graph, because create_graph=True is missing.",
        "Pass create_graph=True at {where}.",
    ),
    "assigned": DetachRemedy(
        "{op} writes the values to a leaf, to .data or to a detached tensor, which autograd does not record.",
        "Use the new tensor itself instead of writing it at {where}; for weights, use torch.func.functional_call.",
    ),
    "rewrapped": DetachRemedy(
        "nn.Parameter or Variable wrapped the tensor in a new leaf without a graph.",
        "Use the tensor that {where} made as it is.",
    ),
    "unknown": DetachRemedy(
        "The result of {op} does not require grad.",
        "Check {where}: the operator is not differentiable.",
    ),
}
SAMPLED = DetachRemedy(
    "sample() draws with gradients disabled.",
    "Use rsample() at {where} if the distribution has it, or log_prob() of the sample in the loss.",
)
