"""Time `diff` on graphs of 100,000 nodes: `python benchmarks/diff.py`.

Prints seconds, and how many times longer each change takes than two equal graphs. Bounds: 2 s, and 0.2 s for equal
ones. Then it times `diff` of the captures of 256 ranks with 5,000 nodes, of which two differ. Bound: 10 s.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.graph import (
    CapturePoint,
    Edge,
    Graph,
    Leaf,
    ModuleCall,
    Node,
    Root,
    SavedTensor,
    SavedValue,
    Storage,
    TensorInfo,
)
from gradinspect.storage import encode_graph

NUM_NODES = 100_000
BLOCK = 10
REPEATS = 5
NUM_RANKS = 256
INFO = TensorInfo(shape=(4, 8), dtype="float32")
NAMES = (
    "AddmmBackward0", "TBackward0", "ReluBackward0", "AddBackward0", "MulBackward0", "ViewBackward0",
    "TransposeBackward0", "CloneBackward0", "NativeLayerNormBackward0", "UnsafeViewBackward0",
)  # fmt: skip


def made(
    inserted: range = range(0), replaced: range = range(0), *, has_modules: bool = True, num_nodes: int = NUM_NODES
) -> Graph:
    """Make a chain of blocks with skip connections, with some nodes more or other ones."""
    ids, number = [], 0
    for old in range(num_nodes + 1):
        number += old in inserted
        ids.append(number)
        number += 1
    nodes: list[Node] = []
    for old in range(num_nodes):
        module = num_nodes // BLOCK - old // BLOCK if has_modules else None
        if old in inserted:
            nodes.append(_node("SinBackward0", (ids[old],), module))
        targets = [ids[old + 1] - (old + 1 in inserted)]
        targets += [ids[min(old + BLOCK // 2, num_nodes)]] if old % BLOCK == 0 else []
        kept = _saved(old) if old % 3 == 0 else ()
        nodes.append(_node("GeluBackward0" if old in replaced else NAMES[old % BLOCK], tuple(targets), module, kept))
    leaf = Leaf(info=INFO, kind="parameter", name="w")
    nodes.append(Node(name="AccumulateGrad", kind="accumulate_grad", forward_outputs=(INFO,), leaf=leaf))
    calls = [ModuleCall(path="", class_name="Net")]
    calls += [ModuleCall(path=f"h.{block}", class_name="Block", parent=0) for block in range(num_nodes // BLOCK)]
    return Graph(
        source="made", torch_version="2.13.0", captured_at=CapturePoint(kind="backward"), roots=(Root(node=0),),
        nodes=tuple(nodes), storages=tuple(Storage(num_bytes=128, origin="activation") for _ in range(num_nodes)),
        modules=tuple(calls) if has_modules else (),
    )  # fmt: skip


def _node(name: str, targets: tuple[int, ...], module: int | None, kept: tuple[SavedValue, ...] = ()) -> Node:
    edges = tuple(Edge(next_node=target) for target in targets)
    return Node(name=name, kind="generated", next_edges=edges, forward_outputs=(INFO,), module=module, saved=kept)


def _saved(storage: int) -> tuple[SavedValue, ...]:
    tensor = SavedTensor(info=INFO, num_bytes=128, storage=storage)
    return (SavedValue(name="_saved_self", kind="tensor", tensor=tensor, status="live", origin="activation"),)


def seconds(run: Callable[[], object]) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def seconds_of_ranks(num_nodes: int = 5_000) -> float:
    """Return the time of the command on captures that differ in the names of their programs, and two in their nodes."""
    plain, other = made(num_nodes=num_nodes), made(range(500, num_nodes, 1_000), num_nodes=num_nodes)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"run.{rank}.json" for rank in range(NUM_RANKS)]
        for rank, file in enumerate(files):
            graph = other if rank in {6, 77} else plain
            file.write_bytes(encode_graph(replace(graph, source=f"train{rank}.py"), compressed=False))
        begin = time.perf_counter()
        words = [sys.executable, "-m", "gradinspect", "diff", *files]
        subprocess.run(words, stdout=subprocess.DEVNULL, check=False)  # ours
        return time.perf_counter() - begin


if __name__ == "__main__":
    print(f"{NUM_RANKS} ranks of 5,000 nodes{seconds_of_ranks():24.2f} s")
    for has_modules in (True, False):
        plain = made(has_modules=has_modules)
        others = {
            "equal": replace(plain, nodes=tuple(map(replace, plain.nodes))),
            "an operator inserted 100 times": made(inserted=range(500, NUM_NODES, 1_000), has_modules=has_modules),
            "an operator replaced in each block": made(replaced=range(5, NUM_NODES, BLOCK), has_modules=has_modules),
        }
        times = {
            name: seconds(lambda plain=plain, other=other: diff_graphs(plain, other))  # type: ignore[misc]
            for name, other in others.items()
        }
        print(f"{NUM_NODES:,} nodes, {'with' if has_modules else 'without'} modules")
        for name, took in times.items():
            print(f"  {name:<36}{took:6.2f} s  {took / times['equal']:5.1f}x")
