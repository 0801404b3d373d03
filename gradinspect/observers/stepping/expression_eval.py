"""Evaluate Python expressions on the live tensors of a node that has just run."""

from typing import Any

import torch

from gradinspect.analyses.gradients.stepping import TensorPreview
from gradinspect.graph import Graph
from gradinspect.observers.stepping.lockstep import LiveStep
from gradinspect.recording.values.saved import raw_tensor
from gradinspect.recording.values.tensor_preview import show_tensor

MAX_CHARACTERS = 2000


class _Saved:
    """The saved values of a node, by name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"This node did not save '{name}'; it saved {self}.")

    def __repr__(self) -> str:
        return ", ".join(self.__dict__) or "nothing"


def evaluate(expression: str, live: LiveStep, graph: Graph, max_values: int) -> tuple[TensorPreview | str, ...]:
    """Evaluate an expression of the user.

    Returns:
        A preview of a tensor, or the repr of any other value; of a tuple or list of tensors, each of its elements.
    """
    saved: dict[str, Any] = {}
    for value in graph.nodes[live.step.node].saved:
        tensor = raw_tensor(live.grad_fn, value)
        name = value.name.removeprefix("_saved_")
        if value.index is None:
            saved[name] = value.value if tensor is None else tensor
        else:
            saved.setdefault(name, []).append(tensor)
    formulas_call_it = {"grad": live.incoming[0]} if len(live.incoming) == 1 else {}
    names = {
        **formulas_call_it, "incoming": live.incoming, "outgoing": live.outgoing, "saved": _Saved(saved),
        "node": live.grad_fn, "torch": torch,
    }  # fmt: skip
    available = ", ".join(names)  # before eval adds the builtins
    try:
        with torch.no_grad():
            found = eval(expression, names)  # noqa: S307  # a debugger evaluates what its user types
            is_row = type(found) in (tuple, list) and any(isinstance(part, torch.Tensor) for part in found)
            return tuple(_shown(part, max_values) for part in (found if is_row else (found,)))
    except NameError as error:
        return (f"NameError: {error}. Available: {available}.",)
    except Exception as error:  # anything that the user's code raises
        return (f"{type(error).__name__}: {error}",)


def _shown(value: object, max_values: int) -> TensorPreview | str:
    if isinstance(value, torch.Tensor):
        return show_tensor(value, max_values)
    text = repr(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]} ..."
