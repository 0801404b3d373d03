"""Weights that are kept apart from those that are trained, and are in the same memory all the same."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import SharedWeights
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

SHARED = Rule(
    code="GI377",
    title="kept weights share memory with the trained ones",
    summary="A moving average, a target or a best state dict is the trained weights themselves, not a copy of them.",
    explanation="state_dict(), .data and detach() return tensors in the memory of the parameters. A best state that is "
    "kept so follows the training, and loading it changes nothing. An average or a target that starts so is averaged "
    "with itself: it is always equal to the trained weights. Reported if a line adds such a tensor to another one in "
    "the same memory; if a state dict is kept under a condition, steps follow, and another place loads it; if one is "
    "loaded into its own model after steps; if three of one line are kept with steps in between; if the state dict of "
    "one variable is loaded into another, and both are the same model: to() and train() return the model itself; or if "
    "`.data =` gives a parameter the memory of a trained one after a step, as to synchronize a target. "
    "Saving to a file makes a copy, and is not reported.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
- average = [p.data for p in model.parameters()]  # the parameters' own memory
+ average = [p.detach().clone() for p in model.parameters()]
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(3):
      optimizer.zero_grad()
      model(torch.randn(5, 8)).square().mean().backward()
      optimizer.step()
      with torch.no_grad():
          for kept, p in zip(average, model.parameters()):
              kept.mul_(0.99).add_(p.data, alpha=0.01)
""",
    remedy="Copy: tensor.detach().clone(), or copy.deepcopy(model.state_dict()).",
    explains=("GI103",),
)


def shared_findings(fact: SharedWeights) -> Iterator[Finding]:
    """Report weights that are the trained ones."""
    where, copied = line_of(fact.shared), f"copy.deepcopy({fact.taken}), with import copy"
    if fact.kind == "state":
        text = (
            f"{fact.name} of {where} is in the memory of the parameters, so each later step of an optimizer changes it "
            "too. Loading it restores nothing."
        )
        remedy = f"Copy it at {where}: {fact.name} = {copied}."
    elif fact.kind == "loaded":
        text = (
            f"{where} got {fact.name} from {fact.taken}, in the memory of the parameters, so each later step of an "
            "optimizer changes it too. Loading it restores nothing."
        )
        remedy = f"At {where}, keep {copied}."
    elif fact.kind == "snapshots":
        text = (
            f"{fact.num_kept} or more results of {fact.taken} are kept, with steps of an optimizer in between. All "
            "are in the memory of the parameters, so they are the same, and stay equal to the trained weights."
        )
        remedy = f"At {where}, keep {copied}."
    elif fact.kind == "synchronized":
        text = (
            f"{where} gives another parameter the memory of {fact.name}, after steps of an optimizer. From then on "
            "both are one, and each step changes both: a target that is to stay as it is follows at once."
        )
        remedy = f"Copy the values at {where}: .data.copy_(...) of the parameter, or load_state_dict() of the model."
    elif fact.kind == "model":
        text = (
            f"{line_of(fact.used)} copies the weights of a model onto themselves: {fact.taken} and {fact.name} are one "
            "and the same, so each step of an optimizer changes both."
        )
        where = f"at {where}" if fact.shared is not None else "where it is made"
        remedy = f"Make {fact.name} a model of its own {where}: {fact.name} = {copied}."
    else:
        text = (
            f"{line_of(fact.used)} adds {fact.name} to a tensor in the same memory, so the average is always equal to "
            f"the trained weights. They share it since {where}."
        )
        remedy = f"Copy the values at {where}, by .clone() or copy_(), instead of sharing the memory."
    yield SHARED.finding(
        text=text,
        places=(
            *place_of("shared", fact.shared),
            *place_of("added" if fact.kind == "average" else "loaded", fact.used),
        ),
        remedy=remedy,
        subjects=(fact.name,),
    )


JUDGE = Judge(SharedWeights, shared_findings)
