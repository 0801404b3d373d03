"""Parameters that learn nothing because no optimizer holds them."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import UnheldParameters
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

UNHELD = Rule(
    code="GI361",
    title="no optimizer holds these parameters",
    summary="Backward computes gradients of parameters that no optimizer updates.",
    explanation="An optimizer updates the tensors it was given when it was made. Layers in a plain list or dict, "
    "and tensors that are no nn.Parameter, are not among `model.parameters()`. A layer that is replaced or added "
    "later has new parameters, while the optimizer keeps the old ones; so has a copy, and a variable to which a new "
    "tensor is assigned. A second model, or a loss "
    "with parameters of its own, has to be passed as well. There is no error: the rest of the model "
    "learns. Intentional uses are not reported: a perceptual loss, a linear probe, inputs whose gradient is "
    "wanted, a model that another optimizer trains.",
    change="""\
  import torch
  from torch import nn

  model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
+ model[2] = nn.Linear(16, 2)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
- model[2] = nn.Linear(16, 2)  # the optimizer holds the old layer
  for _ in range(2):
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
      optimizer.step()
""",
    remedy="Use nn.ModuleList, nn.ModuleDict and nn.Parameter, and make the optimizer when the model is complete.",
)


_ROLES = {"rebound": "replaced", "replaced": "replaced", "remade": "replaced", "later": "added", "unfrozen": "unfrozen"}


def unheld_findings(fact: UnheldParameters) -> Iterator[Finding]:
    """Say why the optimizer does not have the parameters."""
    why, remedy = _words(fact)
    it = "it" if len(fact.names) == 1 and fact.kind != "anew" else "them"
    yield UNHELD.finding(
        text=f"Backward reaches {listed(fact.names)}, but no optimizer holds {it}: {why}",
        places=(
            *place_of("optimizer", fact.created),
            *place_of(_ROLES.get(fact.kind, "made"), fact.made),
            *place_of("backward", fact.backward),
        ),
        remedy=remedy,
        subjects=fact.names,
    )


JUDGE = Judge(UnheldParameters, unheld_findings)


_HIDDEN = {
    "container": (
        "a plain list or dict, so model.parameters() does not contain what is in it",
        "an nn.ModuleList or nn.ModuleDict (nn.ParameterList for plain tensors)",
    ),
    "attribute": ("a plain tensor, so model.parameters() does not contain it", "an nn.Parameter"),
    "buffer": (
        "a buffer, so model.parameters() does not contain it",
        "an nn.Parameter instead of registering it as a buffer",
    ),
}


_WORDS = {
    "computed": (
        "{where} was computed from an nn.Parameter, so it is a plain tensor, and model.parameters() contains neither.",
        "Compute the value first, and make an nn.Parameter of the result, at {made}: nn.Parameter(value * 0.02), not "
        "nn.Parameter(value) * 0.02.",
    ),
    "unfrozen": (
        "{they} frozen when {optimizer} was made, and {made} unfreezes {them} later.",
        "After {made}, pass the parameters to add_param_group() of {optimizer}. Or pass all parameters at {created}: "
        "those without a gradient are left alone.",
    ),
    "model": (
        "{optimizer} was made without the parameters of this {where}.",
        "Pass them as well at {created}. If the {where} is to stay as it is, call requires_grad_(False) on it.",
    ),
    "instead": (
        "backward reaches nothing that {optimizer} holds. It was made of another model, or before this {where} was "
        "copied.",
        "Make {optimizer} at {created} of the parameters of the model that is trained.",
    ),
    "group": (
        "{optimizer} holds other parameters of the same model. What {created} selects by name or type does not "
        "include these.",
        "Pass them as well at {created}: let the last group take every parameter that no other group has.",
    ),
    "twin": (
        "{optimizer} was made of the parameters that another optimizer holds already, and none was made of those of "
        "this {where}.",
        "Make {optimizer} at {created} of the parameters of the {where}.",
    ),
    "anew": (
        "{made} makes new ones for each backward call, so they start from their initial values again each time.",
        "Make them once, in __init__, and use them at {made}.",
    ),
    "rebound": (
        "{where} is a new tensor since {made}, and {optimizer} still holds the one that had this name before.",
        "At {made}, write the new values into the tensor that {optimizer} holds, under torch.no_grad(): "
        "{where}.copy_(...). Or make a new optimizer for the new one.",
    ),
    "rebound together": (
        "{made} makes new ones, and {optimizer} still holds those that had these names before.",
        "After {made}, make {optimizer} again, of the new ones. Or write the new values into those that it holds, "
        "under torch.no_grad(), by copy_().",
    ),
    "replaced": (
        "{where} was replaced at {made}, after {optimizer} was made.",
        "Make {optimizer} after {made}, or pass the new parameters to its add_param_group().",
    ),
}
_WORDS["later"] = (_WORDS["replaced"][0].replace("replaced", "added to the model"), _WORDS["replaced"][1])


def _words(fact: UnheldParameters) -> tuple[str, str]:
    if fact.kind in _HIDDEN:
        what, instead = _HIDDEN[fact.kind]
        return f"{fact.where} is {what}.", f"Make {fact.where} {instead}."
    if fact.kind == "remade":
        return (
            f"{line_of(fact.made)} assigns new ones each time it runs, and {fact.optimizer} keeps the old ones.",
            _instead_of_remaking(fact),
        )
    is_one = len(fact.names) == 1
    known = {
        "where": fact.where, "they": "it was" if is_one else "they were", "them": "it" if is_one else "them",
        "optimizer": fact.optimizer, "made": line_of(fact.made), "created": line_of(fact.created),
    }  # fmt: skip
    why, remedy = _WORDS["rebound together" if fact.kind == "rebound" and not is_one else fact.kind]
    return why.format(**known), remedy.format(**known)


def _instead_of_remaking(fact: UnheldParameters) -> str:
    if not any(f".{name}".endswith(f".{fact.where}") for name in fact.names):  # a module
        return f"Make {fact.where} once, in __init__, instead of at {line_of(fact.made)}."
    if fact.made is not None and not fact.made.function.endswith("forward"):
        return (
            f"Assign no new nn.Parameter at {line_of(fact.made)}: write the values into the one that {fact.optimizer} "
            "holds, under torch.no_grad(), by its copy_()."
        )
    return (
        f"Assign no new nn.Parameter at {line_of(fact.made)}: compute the value in a local variable, and pass that to "
        "the function that a layer calls, such as torch.nn.functional.linear(x, weight, bias)."
    )
