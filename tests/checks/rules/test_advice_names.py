"""Every function that advice names exists in torch."""

import re
from collections.abc import Iterator

import torch
import torch.nn.utils.prune  # which torch does not import by itself

from gradinspect.checks.evidence.in_place.write_access import has_out_of_place_form
from gradinspect.checks.registry import registry
from gradinspect.checks.rules.flow.detach_causes import DETACH_REMEDIES, INSTEAD, READ_FROM_GRAD, SAMPLED
from gradinspect.checks.rules.gradients.nonfinite_causes import DERIVATIVES, INFINITIES, NANS
from gradinspect.checks.rules.gradients.zero_gradients import CAUSES, ROUNDING

_OF_TORCH = re.compile(r"\btorch((?:\.\w+)+)")
_METHOD = re.compile(r"(?:\bx|\)|logits|\bz|\bh)\.(\w+)\(")


def advice() -> Iterator[str]:
    """Yield all texts that do not depend on the program."""
    yield from (rule.remedy for rule in registry().rules.values())
    for words in (*DETACH_REMEDIES.values(), SAMPLED, READ_FROM_GRAD):
        yield words.remedy
    yield from (cause.remedy for cause in (*DERIVATIVES, *NANS, *INFINITIES, *CAUSES))
    yield from INSTEAD.values()


def test_functions_and_methods_exist() -> None:
    """Whatever is written as `torch.name` or as a method of a tensor."""
    texts = list(advice())
    paths = [found for text in texts for found in _OF_TORCH.findall(text)]
    methods = [found for text in texts for found in _METHOD.findall(text)]

    assert paths
    assert methods
    for path in paths:
        value = torch
        for name in path.strip(".").split("."):
            value = getattr(value, name)
    assert [name for name in methods if not hasattr(torch.Tensor, name)] == []
    assert [name for name in ROUNDING.values() if not hasattr(torch.Tensor, name)] == []


def test_an_out_of_place_form_is_only_named_if_torch_has_it() -> None:
    """For every operator of a tensor that works in place; `zero_` has none."""
    in_place = [name for name in dir(torch.Tensor) if name.endswith("_") and not name.endswith("__")]
    named = [name for name in in_place if has_out_of_place_form(name)]

    assert len(named) > 100
    assert all(callable(getattr(torch.Tensor, name.removesuffix("_"))) for name in named)
    assert not {"zero_", "fill_", "normal_", "uniform_", "copy_"} & set(named)
    assert has_out_of_place_form("leaky_relu_")
    assert not has_out_of_place_form("mul")
