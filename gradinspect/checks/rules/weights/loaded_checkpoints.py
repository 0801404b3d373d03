"""A checkpoint of which nothing was loaded."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import NothingLoaded
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

NOT_LOADED = Rule(
    code="GI373",
    title="nothing was loaded from the checkpoint",
    summary="load_state_dict(strict=False) found no name of the model in the checkpoint.",
    explanation="With strict=False, names that the model does not have are ignored, and so are those that the "
    "checkpoint does not have. If all of them differ, the model keeps its random weights and there is no error. "
    "Typical causes are a prefix such as 'module.', 'model.' or '_orig_mod.', and a checkpoint that has the state "
    "dict under a key such as 'state_dict'. A checkpoint that has at least one name of the model is not reported.",
    change="""\
  import torch
  from torch import nn

  model = nn.Sequential(nn.Linear(8, 4))
  saved = {"module.0.weight": torch.ones(4, 8)}
- model.load_state_dict(saved, strict=False)  # no name fits
+ saved = {k.removeprefix("module."): v for k, v in saved.items()}
+ model.load_state_dict(saved, strict=False)
  loss = model(torch.randn(5, 8)).square().mean()
  loss.backward()
""",
    remedy="Rename the keys, and look at the missing_keys and unexpected_keys that load_state_dict returns.",
)


def loading_findings(fact: NothingLoaded) -> Iterator[Finding]:
    """Report a checkpoint without any name of the model."""
    where = line_of(fact.loaded)
    yield NOT_LOADED.finding(
        text=f"The checkpoint has {fact.num_names:,} names, such as '{fact.given}', and {fact.model} has none of them: "
        f"its own are like '{fact.wanted}'. strict=False hides that, so the model keeps the weights that it had.",
        places=place_of("loaded", fact.loaded),
        remedy=f"{_remedy(fact)} before {where}.",
    )


JUDGE = Judge(NothingLoaded, loading_findings)


def _remedy(fact: NothingLoaded) -> str:
    if fact.is_nested:
        return f"Take the state dict that is under '{fact.given}' in the checkpoint"
    if fact.given.endswith(f".{fact.wanted}"):
        return f"Remove the prefix '{fact.given.removesuffix(fact.wanted)}' from each name"
    if fact.wanted.endswith(f".{fact.given}"):
        return f"Add the prefix '{fact.wanted.removesuffix(fact.given)}' to each name"
    return "Rename the keys of the checkpoint"
