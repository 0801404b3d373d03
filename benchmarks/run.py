"""Time gradinspect against what a user would pick instead, side by side in one run: `python benchmarks/run.py`.

Needs `pip install torchviz` for the comparison with it. Prints medians; every measurement has a process of its own, and
the things compared take turns, so that a machine that slows down slows both.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPEATS = 5
MAX_DOT_S = 120
MEASURE = Path(__file__).parent / "measure.py"
LARGE = ("RNN, 5,000 steps", "RNN, 50,000 steps", "wide, 100,000 nodes")
MODELS = ("ResNet-50", "GPT-2")


def measure(*words: str, limit_s: int = 600) -> dict[str, Any]:
    """Run one measurement."""
    command = [sys.executable, str(MEASURE), *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the `dot` that it started
        process.communicate()
        return {"failed": f"not done after {limit_s} s"}
    if process.returncode:
        return {"failed": stderr.strip().splitlines()[-1]}
    result: dict[str, Any] = json.loads(stdout)
    return result


def in_turn(*runs: tuple[str, str], repeats: int = REPEATS) -> list[dict[str, Any]]:
    """Take turns, and return for each the result with the median time."""
    results: list[list[dict[str, Any]]] = [[] for _ in runs]
    for _ in range(repeats):
        for found, words in zip(results, runs, strict=True):
            found.append(measure(*words))
    return [_median(found) for found in results]


def _median(found: list[dict[str, Any]]) -> dict[str, Any]:
    failed = next((result for result in found if "failed" in result), None)
    if failed is not None:
        return failed
    middle = statistics.median_low(result["seconds"] for result in found)
    return next(result for result in found if result["seconds"] == middle)


def shown(result: dict[str, Any]) -> str:
    """Write a time, or why there is none."""
    return result.get("failed") or f"{result['seconds']:.3f} s"


def main() -> None:
    """Print the tables."""
    print(
        "Recording everything, against a bare walk over next_functions, one that also reads what tells nodes apart, and"
    )
    print("one that reads all that a record holds")
    for graph in (*LARGE, *MODELS):
        words = ("bare_walk", "bare_reads", "all_reads", "record")
        bare, reads, all_reads, ours = in_turn(*[(word, graph) for word in words])
        ratio, floor = ours["seconds"] / reads["seconds"], ours["seconds"] / all_reads["seconds"]
        a_node = ours["bytes"] / ours["count"]
        print(f"  {graph:22} {ours['count']:>8,} nodes  walk {shown(bare):>8}  reads {shown(reads):>8}"
              f"  all reads {shown(all_reads):>8}  record {shown(ours):>8}"
              f"  x{ratio:4.1f}, x{floor:4.1f}  {a_node:5.0f} bytes a node")  # fmt: skip
    print("The whole command on a small program, CPU time: " + "  ".join(command_cost()))
    print("A training step of GPT-2, CPU time")
    step = measure("step")
    plain, added = step["plain"], step["added"]
    print(f"  plain {plain:.3f} s  recording modules, lines and graph adds {added:.3f} s  x{1 + added / plain:.3f}")
    print("Backward of GPT-2, CPU time")
    backward = measure("gradients")
    ratio = backward["watched"] / backward["plain"]
    print(f"  plain {backward['plain']:.3f} s  every gradient watched {backward['watched']:.3f} s  x{ratio:.2f}")
    print("DOT text, against torchviz with show_attrs and show_saved")
    for graph in (*MODELS, *LARGE):
        theirs, ours = in_turn(("dot_by_torchviz", graph), ("dot_by_gradinspect", graph), repeats=3)
        print(f"  {graph:22} torchviz {shown(theirs):>16}  gradinspect {shown(ours):>8}")
    print("Recording, then a page of the tree")
    for graph in (*MODELS, *LARGE):
        print(f"  {graph:22} tree {shown(measure('tree', graph)):>8}")
    print("An SVG, from recording to the last byte: folded, and all of it, against torchviz and dot")
    for graph in (*MODELS, *LARGE):
        theirs = measure("svg_by_torchviz", graph, limit_s=MAX_DOT_S)
        folded, full = in_turn(("svg", graph), ("svg_full", graph), repeats=3)
        peak = full.get("peak", 0) / 2**20
        print(f"  {graph:22} torchviz and dot {shown(theirs):>24}  folded {shown(folded):>8}  full {shown(full):>8}"
              f"  peak {peak:,.0f} MiB")  # fmt: skip
    print("Held memory: recording, then the accounting of all storages, modules and observations")
    for graph in ("GPT-2", "wide, 100,000 nodes"):
        record, both = in_turn(("record", graph), ("memory", graph), repeats=3)
        print(f"  {graph:22} record {shown(record):>8}  with memory {shown(both):>8}")
    seconds, peak = fake_decoder()
    print(f"  decoder of 70 billion parameters, --fake, the whole command: {seconds:.1f} s, {peak / 2**20:,.0f} MiB")


def command_cost(repeats: int = 7) -> list[str]:
    """Run a small program as it is and under verbs, in turn, and say the processor time that each verb adds.

    Python may keep what it compiles: otherwise each run would compile the package again, and be timed for that.
    """
    root = Path(__file__).parents[1]
    program = ["samples/mlp.py"]
    words = {"plain": program, **{verb: ["-m", "gradinspect", verb, *program] for verb in ("trace", "check", "saved")}}
    words["overview"] = ["-m", "gradinspect", *program]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds: dict[str, list[float]] = {name: [] for name in words}
    for _ in range(repeats + 1):
        for name, given in words.items():
            process = subprocess.Popen(
                [sys.executable, *given],
                cwd=root,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _, _, usage = os.wait4(process.pid, 0)
            seconds[name].append(usage.ru_utime + usage.ru_stime)
    medians = {name: statistics.median(found[1:]) for name, found in seconds.items()}  # the first run compiles
    plain = medians.pop("plain")
    return [f"plain {plain:.2f} s", *(f"{verb} adds {found - plain:.2f} s" for verb, found in medians.items())]


def fake_decoder() -> tuple[float, int]:
    """Run the command on a model that no machine here could hold; return seconds and peak memory in bytes."""
    script = str(Path(__file__).parent / "decoder_70b.py")
    start = time.perf_counter()
    command = [sys.executable, "-m", "gradinspect", "memory", "--fake", script]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - start, usage.ru_maxrss * 1024


if __name__ == "__main__":
    main()
