"""Torch's own op samples: every place and every saved output is what the dispatcher saw go in and out."""

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from dispatch_witness import Call, Witness, names_of_places, nodes_below
from operator_sweep import operators
from torch.utils._pytree import tree_leaves

from gradinspect.catalog import load_catalog

ENTRIES = load_catalog().entries


class Sweep:
    """Compares the nodes of many op samples with what the witness saw."""

    def __init__(self) -> None:
        self.num_places = 0
        self.num_outputs = 0
        self.classes: Counter[str] = Counter()
        self.without_call: Counter[str] = Counter()
        self.wrong: list[str] = []

    def run(self, op_infos: Sequence[Any], samples_each: int) -> None:
        """Call each op on its samples."""
        for op_info in op_infos:
            for dtype in (torch.float32, torch.complex64):
                if dtype in op_info.supported_backward_dtypes("cpu"):
                    samples = op_info.sample_inputs("cpu", dtype, requires_grad=True)
                    for _, sample in zip(range(samples_each), samples, strict=False):
                        self.check(functools.partial(op_info, sample.input, *sample.args, **sample.kwargs))

    def check(self, function: Callable[[], Any]) -> None:
        """Run one function and look at every node that it made."""
        first = torch._C._autograd._get_sequence_nr()
        with Witness() as witness:
            made = function()
        roots = [value.grad_fn for value in tree_leaves(made) if isinstance(value, torch.Tensor)]
        for node in nodes_below(roots):
            if node.name() not in ENTRIES or node._sequence_nr() < first:
                continue
            self.classes[node.name()] += 1
            names = names_of_places(node)
            call = witness.call_of(node)
            if None in names:
                self.wrong.append(f"{node.name()}: {len(names)} places, {ENTRIES[node.name()].arguments}")
            elif call is None:
                self.without_call[node.name()] += 1
            else:
                self.check_places(node, names, call)
                self.check_outputs(node, call)

    def check_places(self, node: Any, names: list[str | None], call: Call) -> None:
        """Compare the argument of each place with the one that was passed."""
        for name, (next_node, input_nr) in zip(names, node.next_functions, strict=True):
            passed = call.arguments.get(name or "")
            if isinstance(passed, torch.Tensor) and passed.is_leaf and passed._is_view():
                continue  # made under no_grad, such a tensor says that it requires grad and has no edge
            self.num_places += 1
            found = None if next_node is None else (getattr(next_node, "variable", next_node), input_nr)
            expected = call.edges.get(name or "")
            if (found and (id(found[0]), found[1])) != (expected and (id(expected[0]), expected[1])):
                self.wrong.append(f"{node.name()}: {name} of {call.op}")

    def check_outputs(self, node: Any, call: Call) -> None:
        """Compare what is said to be a saved output with what came out."""
        storages = {storage_key(result) for result in call.results}
        for name in ENTRIES[node.name()].outputs:
            raw = getattr(node, f"_raw_saved_{name}")
            for tensor in (raw.data,) if not isinstance(raw, list | tuple) else (item.data for item in raw):
                if tensor is not None:
                    self.num_outputs += 1
                    if storage_key(tensor) not in storages:
                        self.wrong.append(f"{node.name()}: {name} is no output of {call.op}")


def storage_key(tensor: torch.Tensor) -> int:
    """Tell memories apart."""
    return int(tensor.untyped_storage()._cdata) if tensor.layout == torch.strided else 0


def sweep(every: int, samples_each: int) -> Sweep:
    """Go through torch's own op samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the samples include deprecated ops
        found = Sweep()
        found.run(operators()[::every], samples_each)
    return found


@pytest.mark.slow
def test_op_samples_agree_with_the_dispatcher() -> None:
    """Places and saved outputs of every eighth op in torch's own list are what the dispatcher saw go in and out."""
    found = sweep(every=8, samples_each=3)

    assert found.wrong == []
    assert not found.without_call
    assert len(found.classes) > 50
    assert found.num_places > 400
    assert found.num_outputs > 40


@pytest.mark.sweep
def test_all_op_samples_agree_with_the_dispatcher() -> None:
    """Places and saved outputs of all ops in torch's own list are what the dispatcher saw go in and out."""
    found = sweep(every=1, samples_each=10_000)

    assert found.wrong == []
    assert not found.without_call
    assert len(found.classes) > 300
    assert found.num_places > 50_000
    assert found.num_outputs > 2_000
