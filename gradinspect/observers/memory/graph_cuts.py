"""Cut each graph of AOTAutograd under every activation memory budget, and note which of them run.

What comes in: the partitioner of a backend. What goes out: for each run of a compiled forward, which storages it got
and returned, and what its graphs would be under each budget. The program gets what its own budget makes.

NOTE [Cuts in copies]
The partitioner changes the graph that it cuts, and takes the first of equally good cuts, in an order that a copy of the
graph does not have. So each budget cuts the graph itself, in a copy of this process, and sends the result. What kernels
have for themselves is measured before, for all operators of the uncut graph, so that copies find it.
Source: torch/_functorch/partitioners.py, torch 2.13.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pickle import dumps, loads
from typing import Any, NamedTuple

import torch

from gradinspect.analyses.memory.budgets import BUDGETS, GraphPair, Work
from gradinspect.observers.memory.kernel_scratch import KernelScratch
from gradinspect.recording.values.storages import storage_of
from gradinspect.runner.forked import run_in_copy
from gradinspect.torch_api.backends import (
    FORWARD,
    PARTITION,
    Parts,
    boxed,
    memory_budget,
    run_boxed,
    with_memory_budget,
)
from gradinspect.torch_api.compiled_graphs import arguments_of, flops_of, is_operator, is_recomputed, storages_of
from gradinspect.torch_api.dynamo import uncompiled


class CutGraph:
    """A graph of AOTAutograd, under each budget."""

    def __init__(self) -> None:
        """Start without a cut: a graph that needs no gradient has none."""
        self.cuts: dict[float, GraphPair] = {}
        self.problems: dict[float, str] = {}  # why there is no cut under a budget
        self.num_outputs = 0  # of the forward, without what it saves
        self.current = 1.0  # the budget of the program


class ForwardRun(NamedTuple):
    """A compiled forward that has run."""

    graph: CutGraph
    inputs: tuple[Any, ...]  # storages; None: no tensor
    outputs: tuple[Any, ...]
    saved: tuple[Any, ...]
    made_inputs: frozenset[int]  # places of those that the program has computed with gradients


class GraphCuts:
    """Replaces the partitioner and the compiler of forward graphs."""

    def __init__(self) -> None:
        """Start without a graph."""
        self.runs: list[ForwardRun] = []
        self._scratch = KernelScratch()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of the peaks must know."""
        return tuple(self._scratch.notes)

    def watch(self, parts: Parts) -> Parts:
        """Return the replacements for one graph."""
        if PARTITION not in parts or FORWARD not in parts:
            return {}
        graph = CutGraph()
        return {
            PARTITION: _cutting(graph, parts[PARTITION], self._scratch),
            FORWARD: lambda *args, **kwargs: self._noting(graph, parts[FORWARD](*args, **kwargs)),
        }

    def _noting(self, graph: CutGraph, compiled: Any) -> Callable[[list[Any]], Any]:
        @uncompiled
        def run(arguments: list[Any]) -> Any:
            given = list(arguments) if graph.cuts else []  # the list is emptied while it runs
            results = run_boxed(compiled, arguments)
            if graph.cuts:
                made = frozenset(place for place, one in enumerate(given) if _is_made(one))
                inputs, outputs = _storages(given), _storages(results)
                num = graph.num_outputs
                self.runs.append(ForwardRun(graph, inputs, outputs[:num], outputs[num:], made))
            return results

        return boxed(run)


def _cutting(graph: CutGraph, partition: Callable[..., Any], scratch: KernelScratch) -> Callable[..., Any]:
    @uncompiled
    def cut(joint: Any, inputs: Any, **kwargs: Any) -> Any:
        def under(budget: float) -> GraphPair:
            with with_memory_budget(budget):
                forward, backward = partition(joint, inputs, **kwargs)
            return cut_of(forward, backward, graph.num_outputs, scratch)

        _work(joint, scratch)
        graph.num_outputs = int(kwargs["num_fwd_outputs"])
        graph.current = memory_budget()
        for budget in BUDGETS:
            if budget != graph.current:
                found = _in_a_fork(partial(under, budget))
                if isinstance(found, str):
                    graph.problems[budget] = found
                else:
                    graph.cuts[budget] = found
        forward, backward = partition(joint, inputs, **kwargs)
        graph.cuts[graph.current] = cut_of(forward, backward, graph.num_outputs, scratch)
        return forward, backward

    return cut


def _in_a_fork(work: Callable[[], GraphPair]) -> GraphPair | str:
    """Cut a graph in a copy of this process, or say why that fails. NOTE [Cuts in copies].

    A child of `run_forked` ends as a program does, with its flushes and exit handlers; this one is inside of one.
    """

    def cut() -> bytes:
        torch.set_num_threads(1)  # the threads of the pool are not in the copy
        return dumps(_tried(work))

    try:
        found = run_in_copy(cut)
    except OSError as error:
        return type(error).__name__
    return loads(found) if found else "its process was ended"  # noqa: S301  # our own


def _tried(work: Callable[[], GraphPair]) -> GraphPair | str:
    try:
        return work()
    except Exception as error:  # of a partitioner, which may be the program's own
        return type(error).__name__


def cut_of(forward: Any, backward: Any, num_outputs: int, scratch: KernelScratch) -> GraphPair:
    """Describe a forward and a backward graph.

    Args:
        forward: The graph of the forward.
        backward: That of the backward.
        num_outputs: How many outputs the forward has, without what it saves.
        scratch: Knows what kernels have for themselves.
    """
    outputs = _returned(forward)
    again = [call for call in backward.graph.nodes if call.op == "call_function" and is_recomputed(call)]
    gradients = [call for call in _arguments(backward) if call.name.startswith("tangents")]
    return GraphPair(
        forward=_work(forward, scratch),
        backward=_work(backward, scratch),
        inputs=tuple(next(iter(storages_of(call)), None) for call in _arguments(forward)),
        outputs=tuple(_first(one) for one in outputs[:num_outputs]),
        saved=_together(outputs[num_outputs:]),
        gradients=_together(gradients),
        results=frozenset(_together(_returned(backward))),
        num_recomputed=len(again),
        recomputed_flops=sum(map(flops_of, again)),
    )


def _work(module: Any, scratch: KernelScratch) -> tuple[Work, ...]:
    return tuple(
        Work(
            storages_of(call),
            frozenset(_together(call.all_input_nodes)),
            scratch.bytes_of(call.target, *arguments_of(call)) if is_operator(call) else 0,
        )
        for call in module.graph.nodes
        if call.op == "call_function"
    )


def _arguments(module: Any) -> list[Any]:
    return [call for call in module.graph.nodes if call.op == "placeholder"]


def _returned(module: Any) -> list[Any]:
    (output,) = (call for call in module.graph.nodes if call.op == "output")
    return list(output.args[0])


def _first(call: Any) -> int | None:
    return next(iter(storages_of(call)), None) if hasattr(call, "meta") else None


def _together(calls: Sequence[Any]) -> dict[int, int]:
    return {key: size for call in calls if hasattr(call, "meta") for key, size in storages_of(call).items()}


def _storages(values: Any) -> tuple[Any, ...]:
    flat = values if isinstance(values, list | tuple) else (values,)
    return tuple(storage_of(one) if isinstance(one, torch.Tensor) else None for one in flat)


def _is_made(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf
