"""One measurement in a process of its own: `python measure.py WHAT GRAPH` prints seconds, nodes and bytes as JSON.

A fresh process each time, because torch makes the Python wrapper of a node when it is first touched and keeps it.
"""

import gc
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import graphs
import torch

from gradinspect.analyses.memory.held import measure_memory
from gradinspect.analyses.memory.notes import memory_notes
from gradinspect.analyses.memory.tree import module_tree
from gradinspect.observers.gradients.gradient_meter import GradientMeter
from gradinspect.recording.capture import Moment, capture_graph, record_graph
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.recorder import Recorder
from gradinspect.renderers.picture.dot.document import render_dot
from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.terminal.trees.tree import render_tree

STEPS = 15


def bare_walk(loss: torch.Tensor) -> int:
    """Walk `next_functions` and do nothing else."""
    seen = {loss.grad_fn}
    order = [loss.grad_fn]
    for node in order:
        for next_node, _ in node.next_functions:  # type: ignore[union-attr]
            if next_node is not None and next_node not in seen:
                seen.add(next_node)
                order.append(next_node)
    _kept.append(order)
    return len(order)


def bare_reads(loss: torch.Tensor) -> int:
    """Walk, and read once from Python the least that tells nodes apart, without keeping any."""
    seen = {loss.grad_fn}
    order = [loss.grad_fn]
    saved_of: dict[type, list[str]] = {}
    for node in order:
        kind = type(node)
        names = saved_of.get(kind)
        if names is None:
            names = saved_of[kind] = [name for name in dir(kind) if name.startswith("_raw_saved_")]
        read = (kind.__name__, node._sequence_nr(), node._input_metadata, node.metadata)  # type: ignore[union-attr]
        for name in names:
            saved = getattr(node, name)
            for raw in saved if isinstance(saved, list | tuple) else (saved,):
                data = raw.data
                if data is not None:
                    read = (data.shape, data.dtype, data._version, data.untyped_storage())  # type: ignore[assignment]
        for next_node, _ in node.next_functions:  # type: ignore[union-attr]
            if next_node is not None and next_node not in seen:
                seen.add(next_node)
                order.append(next_node)
    _kept.append((order, read))
    return len(order)


def all_reads(loss: torch.Tensor) -> int:
    """Walk, and read once all that a record holds, without keeping any: no recorder in Python can need less."""
    count = bare_walk(loss)
    names_of: dict[type, tuple[list[str], list[str]]] = {}
    for node in _kept[-1]:
        kind = type(node)
        if kind not in names_of:
            raws = [name for name in dir(kind) if name.startswith("_raw_saved_")]
            values = [name for name in dir(kind) if name.startswith("_saved_") and f"_raw{name}" not in raws]
            names_of[kind] = (raws, values)
        _read_node(node, kind.__name__, *names_of[kind])
    return count


def _read_node(node: Any, class_name: str, raws: list[str], values: list[str]) -> None:  # noqa: ANN401  # private names
    read: Any = (class_name, node._sequence_nr())
    for output in node._input_metadata:
        read = (output.shape, output.dtype, output.device)
    for name in values:
        read = getattr(node, name)
    for name in raws:
        saved = getattr(node, name)
        for raw in saved if isinstance(saved, list | tuple) else (saved,):
            read = raw.unpack_hook
            data = raw.data
            if data is not None:
                read = (data.shape, data.dtype, data.device, data._version, data.untyped_storage()._cdata, data.nbytes,
                        data.is_contiguous(), data.storage_offset(), data.grad_fn)  # fmt: skip
    del read


def record(loss: torch.Tensor) -> int:
    """Record everything: structure, metadata, saved attributes, names."""
    graph = capture_graph(loss)
    _kept.append(graph)
    return len(graph.nodes)


def dot_by_torchviz(loss: torch.Tensor) -> int:
    """Make the DOT text as torchviz does, with all it can show."""
    from torchviz import make_dot  # noqa: PLC0415  # a benchmark's own requirement

    return len(make_dot(loss, show_attrs=True, show_saved=True).source)


def dot_by_gradinspect(loss: torch.Tensor) -> int:
    """Record and make the DOT text."""
    return len(render_dot(capture_graph(loss)))


def tree(loss: torch.Tensor) -> int:
    """Record and print the page."""
    return sum(1 for _ in render_tree(capture_graph(loss)))


def svg(loss: torch.Tensor) -> int:
    """Record and draw."""
    return len(draw(capture_graph(loss), "svg").content)


def svg_full(loss: torch.Tensor) -> int:
    """Record and draw all of it."""
    return len(draw(capture_graph(loss), "svg", DrawOptions(full=True)).content)


def svg_by_torchviz(loss: torch.Tensor) -> int:
    """Draw as torchviz and `dot` do."""
    from torchviz import make_dot  # noqa: PLC0415  # a benchmark's own requirement

    return len(make_dot(loss).pipe(format="svg"))


def memory(loss: torch.Tensor) -> int:
    """Record, and account for every byte."""
    graph = capture_graph(loss)
    measured = measure_memory(graph)
    module_tree(graph, measured)
    memory_notes(graph, measured)
    return measured.extra_bytes


WHATS: dict[str, Callable[[torch.Tensor], int]] = {
    function.__name__: function
    for function in (
        bare_walk,
        bare_reads,
        all_reads,
        record,
        dot_by_torchviz,
        dot_by_gradinspect,
        tree,
        svg,
        svg_full,
        svg_by_torchviz,
        memory,
    )
}
_kept: list[Any] = []


def resident_bytes() -> int:
    """Return the memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(what: str, graph: str) -> None:
    """Measure once."""
    torch.manual_seed(0)
    capture_graph((torch.ones(2, requires_grad=True) * 2).sum())  # the catalogue and the imports are not the question
    loss, model = graphs.GRAPHS[graph]()  # the model has a name here, as it has in a user's program
    gc.collect()
    before = resident_bytes()
    start = time.perf_counter()
    try:
        count = WHATS[what](loss)
    except RecursionError:
        print(json.dumps({"failed": "RecursionError"}))
    else:
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        held = resident_bytes() - before
        print(json.dumps({"seconds": seconds, "count": count, "bytes": held, "peak": peak}))
    sys.stdout.flush()
    del model
    os._exit(0)  # a walked graph must not be freed by recursion


def step() -> None:
    """Run training steps of GPT-2, plain and watched in turn, and print medians of the CPU time.

    In one process and on one thread. What we add is in the forward part; backward, which is the engine's alone, varies
    by more than that from step to step, so that its time is taken of both kinds together.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = graphs.GPT2()
    tokens = torch.randint(0, 50_257, (1, 128))
    recorder = Recorder()
    forward: dict[bool, list[float]] = {False: [], True: []}
    backward: list[float] = []
    for number in range(1 + 2 * STEPS):
        is_watched = number % 2 == 0
        start = time.process_time()
        with recorder if is_watched else nullcontext():
            loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            if is_watched:
                capture_graph(loss, recorder=recorder)
        middle = time.process_time()
        loss.backward()
        if number:  # the first step makes the gradients
            forward[is_watched].append(middle - start)
            backward.append(time.process_time() - middle)
    added = statistics.median(forward[True]) - statistics.median(forward[False])
    plain = statistics.median(forward[False]) + statistics.median(backward)
    print(json.dumps({"plain": plain, "added": added}))
    sys.stdout.flush()
    os._exit(0)


def gradients() -> None:
    """Run backward of GPT-2, plain and watched in turn, and print the median CPU time of each."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = graphs.GPT2()
    tokens = torch.randint(0, 50_257, (1, 128))
    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(1 + 2 * STEPS):
        is_watched = number % 2 == 0
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        outputs = outputs_in(loss)
        graph = record_graph(outputs, Moment(source="benchmark"))
        start = time.process_time()
        meter = GradientMeter(graph, outputs) if is_watched else None
        loss.backward()
        if meter is not None:
            meter.finish()
        if number:  # the first makes the gradients
            times[is_watched].append(time.process_time() - start)
    print(json.dumps({"plain": statistics.median(times[False]), "watched": statistics.median(times[True])}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "step":
        step()
    elif sys.argv[1] == "gradients":
        gradients()
    else:
        main(sys.argv[1], sys.argv[2])
