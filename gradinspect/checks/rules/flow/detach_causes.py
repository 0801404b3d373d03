"""The ways in which a tensor is detached from its graph: what happens there, and what helps."""

from typing import NamedTuple

from gradinspect.checks.facts.value_flow import DetachCause


class DetachRemedy(NamedTuple):
    """What to say about one cause; `{op}` is the operator, `{where}` its line, `{used}` the line that reads it."""

    why: str
    remedy: str


_DIFFERENTIABLE = "At {where}, use a differentiable function instead of {op}."
SAMPLED = DetachRemedy(
    "sample() draws with gradients disabled.",
    "Use rsample() at {where} if the distribution has it, or log_prob() of the sample in the loss.",
)
DETACH_REMEDIES: dict[DetachCause, DetachRemedy] = {
    "detach": DetachRemedy(
        "{op}() stops gradient flow.",
        "Remove {op}() at {where} if this path should train.",
    ),
    "data": DetachRemedy(
        ".data returns the values without their graph.",
        "Use the tensor itself instead of .data at {where}.",
    ),
    "deepcopy": DetachRemedy(
        "deepcopy() copies the values into new leaves without a graph.",
        "Use the original instead of the copy made at {where}. For changed weights of a module, compute them from the "
        "original ones and call torch.func.functional_call(module, weights, inputs).",
    ),
    "loaded": DetachRemedy(
        "load_state_dict() copies the values into leaves without a graph.",
        "Call torch.func.functional_call(module, weights, inputs) with the tensors themselves instead of loading them "
        "at {where}.",
    ),
    "copy": DetachRemedy(
        "{op}() copies values into a new tensor without a graph.",
        "At {where}, use the tensor itself, or torch.stack() on a list of tensors.",
    ),
    "integer": DetachRemedy(
        "{op} returns integers or booleans, which have no gradient.",
        _DIFFERENTIABLE,
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
        "Does the forward of the Function at {where} call mark_non_differentiable(), or compute without its input?",
    ),
    "python": DetachRemedy(
        "{op}() converts the value to Python or NumPy, and what is computed from it there is a constant.",
        "Keep the tensor at {where}, and use torch functions only from there on.",
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
    "sample": SAMPLED,
    "unknown": DetachRemedy("The result of {op} does not require grad.", _DIFFERENTIABLE),
}
READ_FROM_GRAD = DetachRemedy(
    "What backward stores in .grad has no graph.",
    "Compute the gradient by torch.autograd.grad(loss, parameters, create_graph=True) instead of reading .grad at "
    "{where}; then call backward once, on the whole loss.",
)

_CHOICE = "softmax() as weights, or torch.nn.functional.gumbel_softmax(scores, hard=True),"
_INDICES = "the values beside the indices, or weights by softmax(),"
# What to use in place of an operator that returns integers.
INSTEAD = {
    "argmax": _CHOICE,
    "argmin": _CHOICE,
    "multinomial": "log_prob() of the sample in the loss, or gumbel_softmax(),",
    **dict.fromkeys(("max", "min", "topk", "sort", "argsort", "kthvalue", "mode", "median"), _INDICES),
    **dict.fromkeys(("long", "int", "to", "type", "byte", "short"), "the floating-point tensor"),
}
COMPARISONS = frozenset(("gt", "lt", "ge", "le", "greater", "less", "greater_equal", "less_equal", "bool"))
