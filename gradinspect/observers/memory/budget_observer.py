"""Work out what a compiled step keeps under each activation memory budget, at one backward call."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import nn

from gradinspect.analyses.memory.budgets import BudgetRow, BudgetTable, GraphPair, most_alive
from gradinspect.analyses.memory.held import measure_memory
from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY, storages_of
from gradinspect.graph import Graph
from gradinspect.observers.memory.graph_cuts import CutGraph, ForwardRun, GraphCuts
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.names.instances import instances_of
from gradinspect.recording.values.storages import plain_tensors, storage_key
from gradinspect.runner.engine import EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.backends import compiling_with, memory_budget
from gradinspect.torch_api.modules import own_buffers, own_parameters
from gradinspect.torch_api.tensors import key_of_storage, plain_tensors_only
from gradinspect.units import format_count

_UNMATCHED = (
    "What {} keeps does not depend on a budget here: its backend does not use torch's partitioner, or its code was "
    "compiled before."
)
_UNCUT = (
    "Not known under {}, since {} could not be cut ({}): it has no row, or counts that graph as the program's own "
    "budget cuts it."
)
_OFF = "The nodes of this run were seen to keep {:+,} bytes beside what its graphs say: the rows may be off by as much."
Place = tuple[int, int]  # the number of a run, and a storage in its graphs; (-1, key): one that is there
Sizes = Mapping[Place, int]


class BudgetObserver(Observer[BudgetTable]):
    """Looks at the first backward call, or at the one that was asked for, and stops the program."""

    def __init__(self, run: Run) -> None:
        """Set up."""
        self._run = run
        self._cuts = GraphCuts()
        self._backends: list[str] = []
        self._table: BudgetTable | None = None

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Partition what the program compiles under each budget."""
        with compiling_with(lambda *_: None, self._backends, self._cuts.watch, as_random_as_eager=False):
            yield

    def on_call(self, call: EngineCall) -> None:
        """Look at the wanted call."""
        if self._table is None and self._run.is_wanted(call):
            walked = self._run.walk_call(call)
            if walked is not None:
                with plain_tensors_only():
                    self._table = self._measured(walked, call)
                walked.walk.close()
                self._cuts.runs.clear()
                self._run.stop_recording()
        if self._table is not None:
            self._run.stop(call.caller)

    def result(self) -> BudgetTable | None:
        """Return what was seen."""
        return self._table

    def _measured(self, walked: WalkedGraph, call: EngineCall) -> BudgetTable:
        graph = walked.graph
        held = measure_memory(graph)
        steps = _Steps(walked, self._cuts.runs, _weights(held, walked))
        budgets = sorted({budget for step in steps.compiled for budget in step.graph.cuts})
        current = steps.compiled[0].graph.current if steps.compiled else memory_budget()
        rows = tuple(steps.under(budget) for budget in budgets)
        off = next((held.extra_bytes - row.kept_bytes for row in rows if row.budget == current), 0)
        notes = [_UNMATCHED.format(format_count(steps.num_unmatched, "compiled node"))] if steps.num_unmatched else []
        notes += [_OFF.format(off)] if off else []
        notes += problems_of({id(step.graph): step.graph for step in steps.compiled}.values())
        notes += self._cuts.notes
        frame = graph.captured_at.frame
        return BudgetTable(
            source=graph.source,
            call=call.name + ("" if frame is None else f" at {graph.frames[frame].file}:{graph.frames[frame].line}"),
            backends=tuple(self._backends),
            num_graphs=len({id(step.graph) for step in steps.compiled}),
            current=current,
            rows=rows,
            walked_bytes=held.extra_bytes,
            notes=tuple(notes),
        )


def problems_of(graphs: Collection[CutGraph]) -> list[str]:
    """Say which budgets are not known of which graphs, budgets with the same reason together."""
    found: dict[tuple[str, int], list[float]] = {}
    budgets = sorted({(budget, why) for graph in graphs for budget, why in graph.problems.items()})
    for budget, why in budgets:
        number = sum(graph.problems.get(budget) == why for graph in graphs)
        found.setdefault((why, number), []).append(budget)
    return [
        _UNCUT.format(f"budget {', '.join(f'{one:g}' for one in under)}", format_count(number, "graph"), why)
        for (why, number), under in found.items()
    ]


def _weights(held: Any, walked: WalkedGraph) -> frozenset[int]:
    """Return the keys of storages that are in memory anyway."""
    keys = {walked.storage_keys[one.storage] for one in held.storages if one.held_as in IN_MEMORY_ANYWAY}
    for module in instances_of(nn.Module):
        for tensor in (*own_parameters(module).values(), *own_buffers(module).values()):
            keys.update(key for one in plain_tensors(tensor) if (key := storage_key(one)) is not None)
    return frozenset(keys)


class _Step(NamedTuple):
    """A node of the graph, in the order of the forward."""

    keeps: dict[Place, int]  # what it was seen to keep
    run: int | None  # which compiled forward made it; None: none of those
    leaves: dict[int, int]  # that get their gradients from it, with their bytes


class _Steps:
    """The nodes of one graph, those that compiled code made beside the runs that made them."""

    def __init__(self, walked: WalkedGraph, runs: list[ForwardRun], weights: frozenset[int]) -> None:
        self._weights = weights
        self._runs = runs
        self.num_unmatched = 0
        leaves = {number: int(leaf.nbytes) for number, leaf in walked.walk.leaves().items()}
        free = list(range(len(runs)))
        self._steps = [
            self._step(walked.graph, walked.storage_keys, number, leaves, free)
            for number in reversed(range(len(walked.graph.nodes)))
            if walked.graph.nodes[number].kind != "accumulate_grad"
        ]
        self.compiled = [runs[step.run] for step in self._steps if step.run is not None]

    def _step(
        self, graph: Graph, keys: tuple[int, ...], number: int, leaves: Mapping[int, int], free: list[int]
    ) -> _Step:
        node = graph.nodes[number]
        found = {storage for value in node.saved for storage in storages_of(value)}
        keeps = {(-1, keys[one]): graph.storages[one].num_bytes for one in found if keys[one] not in self._weights}
        run = None
        if node.kind == "compiled":
            run = self._run_of({keys[one] for one in found}, free)
            self.num_unmatched += run is None
            free[:] = [place for place in free if place != run]
        into = {edge.next_node for edge in node.next_edges if edge is not None}
        return _Step(keeps, run, {one: leaves[one] for one in into if one in leaves})

    def _run_of(self, kept: set[int], free: Sequence[int]) -> int | None:
        """Find the forward that made a node: the one that saved just that, or else the first that had all of it.

        Another may have had it too: of two graphs of one function, backward may reach the second alone.
        """
        exact = (place for place in free if _saved_keys(self._runs[place]) == kept)
        return next(exact, next((place for place in free if kept <= _keys(self._runs[place])), None))

    def under(self, budget: float) -> BudgetRow:
        """Work out one row."""
        kept: dict[Place, int] = {}
        most = num_recomputed = flops = 0
        befores = []
        for step in self._steps:
            befores.append(dict(kept) if step.run is not None else kept)
            if step.run is None:
                kept.update(step.keeps)
                continue
            cut = self._cut(step.run, budget)
            most = max(most, self._forward(step.run, cut, kept))
            kept.update(self._saved(step.run, cut))
            num_recomputed += cut.num_recomputed
            flops += cut.recomputed_flops
        gradients: dict[int, int] = {}
        for step, before in zip(reversed(self._steps), reversed(befores), strict=True):
            if step.run is not None:
                backward = self._backward(step.run, self._cut(step.run, budget), before)
                most = max(most, backward + sum(gradients.values()))
            gradients.update(step.leaves)
        return BudgetRow(
            budget=budget,
            kept_bytes=sum(kept.values()),
            peak_bytes=max(most, sum(kept.values())),
            num_recomputed=num_recomputed,
            recomputed_flops=flops,
        )

    def _cut(self, run: int, budget: float) -> GraphPair:
        cuts = self._runs[run].graph.cuts
        return cuts[budget] if budget in cuts else cuts[self._runs[run].graph.current]

    def _forward(self, run: int, cut: GraphPair, before: Sizes) -> int:
        one = self._runs[run]
        made = {(-1, key_of_storage(one.inputs[place])): int(one.inputs[place].nbytes()) for place in one.made_inputs}
        given = {(-1, key_of_storage(storage)) for storage in one.inputs if storage is not None}
        kept = {place: size for place, size in self._saved(run, cut).items() if place in given}
        around = sum({**before, **made, **kept}.values())
        inputs = {key for key in cut.inputs if key is not None}
        return around + most_alive(cut.forward, {}, {*cut.saved, *(key for key in cut.outputs if key)}, inputs)

    def _saved(self, run: int, cut: GraphPair) -> dict[Place, int]:
        """Return what a forward saves beside weights."""
        there = self._there(run, cut)
        return {
            place: size
            for key, size in cut.saved.items()
            if (place := there.get(key, (run, key)))[0] >= 0 or place[1] not in self._weights
        }

    def _there(self, run: int, cut: GraphPair) -> dict[int, Place]:
        """Find the storages of a graph that are also outside of it."""
        one = self._runs[run]
        pairs = (*zip(cut.outputs, one.outputs, strict=False), *zip(cut.inputs, one.inputs, strict=False))
        return {key: (-1, key_of_storage(storage)) for key, storage in pairs if key is not None and storage is not None}

    def _backward(self, run: int, cut: GraphPair, before: Sizes) -> int:
        there = self._there(run, cut)
        saved = self._saved(run, cut)
        own = {
            key: size
            for key, size in cut.saved.items()
            if (place := there.get(key, (run, key))) in saved and place not in before
        }
        inputs = {key for key in (*cut.inputs, *cut.saved) if key is not None and key not in own}
        return sum(before.values()) + most_alive(cut.backward, {**own, **cut.gradients}, cut.results, inputs)


def _saved_keys(run: ForwardRun) -> set[int]:
    return {key_of_storage(one) for one in run.saved if one is not None}


def _keys(run: ForwardRun) -> set[int]:
    return {key_of_storage(one) for one in (*run.inputs, *run.outputs, *run.saved) if one is not None}
