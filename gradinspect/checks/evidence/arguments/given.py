"""The arguments of a call of torch, which are given by place or by name."""

from collections.abc import Mapping, Sequence
from typing import Any


def argument(args: Sequence[Any], kwargs: Mapping[str, Any], place: int, name: str) -> Any:
    """Return an argument of a call; None if it was not given."""
    return kwargs.get(name, args[place] if len(args) > place else None)


_ONES = ("input", "target", "size_average", "reduce", "reduction")
_WEIGHED = ("input", "target", "weight", "size_average", "reduce", "reduction")
_OF_CLASSES = ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction")
_PARAMETERS = {  # of losses, in order. Source: torch/nn/functional.py, torch 2.13
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "soft_margin_loss"), _ONES),
    **dict.fromkeys(("binary_cross_entropy", "binary_cross_entropy_with_logits"), _WEIGHED),
    **dict.fromkeys(("cross_entropy", "nll_loss"), _OF_CLASSES),
    "huber_loss": ("input", "target", "reduction"),
}


def reduction_of(loss: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return how a loss reduces its elements, by default "mean"; old programs say it by `size_average` and `reduce`."""
    given = {**dict(zip(_PARAMETERS.get(loss, ()), args, strict=False)), **kwargs}
    averages, reduces = given.get("size_average"), given.get("reduce")
    if averages is None and reduces is None:
        return given.get("reduction", "mean")
    if reduces is False:
        return "none"
    return "sum" if averages is False else "mean"
