"""Compare what `fit` predicts with what the allocator reports, and with other tools: `python benchmarks/fit.py`.

Sixty programs, drawn once and for all: six models, four optimizers in three loops each, with and without autocast,
accumulation, clipping, EMA and checkpointing. `12 30` runs programs 12 to 29. `--plans` plans for each model
instead, and tries the cheapest plan. Each number comes from a process of its own. MemTracker is torch's own
estimator; accelerate's estimate (four times the weights, for Adam) is printed where it is installed.
"""

import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import step_models
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

MODELS = Path(__file__).parent / "step_models.py"
NUM_PROGRAMS = 60
LIMIT_SHARE = 0.8  # of the plain peak, for plans


def main() -> None:
    """Print the tables."""
    if "--tracker" in sys.argv:
        print(json.dumps(tracked(sys.argv[2:])))
    elif "--plans" in sys.argv:
        for model in step_models.MODELS:
            plan(model)
    else:
        compare(range(*map(int, sys.argv[1:])) if sys.argv[1:] else range(NUM_PROGRAMS))


def compare(numbers: range) -> None:
    """Print a row for each program, and how far off each tool is."""
    errors: dict[str, list[float]] = {"fit": [], "MemTracker": [], "accelerate": []}
    columns = f"{'allocator':>14}{'fit':>9}{'s':>6}{'MiB':>6}{'MemTracker':>12}{'s':>6}{'MiB':>6}{'accelerate':>12}"
    print(f"{'program':72}{columns}")
    drawn = programs()
    for number in numbers:
        row(drawn[number], errors)
    for tool, found in errors.items():
        if found:
            print(f"{tool:12}median {median(found):.3%}  p95 {percentile(found, 95):.3%}  of {len(found)}")


def programs() -> list[list[str]]:
    """Draw the programs: each model and each optimizer equally often, and all 32 combinations of features."""
    draw = Random(0)
    optimizers = list(product(step_models.OPTIMIZERS, step_models.LOOPS))
    size = len(step_models.FEATURES)
    features = [combination for number in range(size + 1) for combination in combinations(step_models.FEATURES, number)]
    columns: list[list[Any]] = [
        draw.sample(column, len(column))[:NUM_PROGRAMS]
        for column in ([*step_models.MODELS] * 10, optimizers * 5, features * 2)
    ]
    return [[model, *optimizer, *combination] for model, optimizer, combination in zip(*columns, strict=True)]


def row(words: list[str], errors: dict[str, list[float]]) -> None:
    """Measure one program in each way."""
    real = run("fit", str(MODELS), "--real", "--format", "json", "--", *words)[0]["peak_bytes"]
    fit, seconds, used = run("fit", str(MODELS), "--format", "json", "--", *words)
    other, other_seconds, other_used = measured([sys.executable, __file__, "--tracker", *words])
    figures = {"fit": fit["peak_bytes"], "MemTracker": other["peak_bytes"], "accelerate": other["accelerate"]}
    shares = {tool: (found - real) / real for tool, found in figures.items() if found}
    for tool, share in shares.items():
        errors[tool].append(abs(share))
    accelerate, tracker = (f"{shares[tool]:+.1%}" if tool in shares else "-" for tool in ("accelerate", "MemTracker"))
    print(
        f"{' '.join(words):72}{real:14,}{shares['fit']:+9.3%}{seconds:6.1f}{used:6.0f}"
        f"{tracker:>12}{other_seconds:6.1f}{other_used:6.0f}{accelerate:>12}",
        flush=True,
    )


def plan(model: str) -> None:
    """Plan for four fifths of a model's peak, and try it."""
    peak = run("fit", str(MODELS), "--format", "json", "--", model, "AdamW")[0]["peak_bytes"]
    limit = str(int(LIMIT_SHARE * peak))
    found, seconds, _ = run("plan", str(MODELS), "--fit", limit, "--try", "--format", "json", "--", model, "AdamW")
    if not found["plans"]:
        print(f"{model:8}{seconds:6.1f} s  {found['sentence']}", flush=True)
        return
    best = found["plans"][0]
    error = (best["peak_bytes"] - best["measured_peak_bytes"]) / best["measured_peak_bytes"]
    same = f"FLOPs x{best['flops_ratio']:.2f}  bit-equal {best['bit_equal']}"
    print(f"{model:8}{seconds:6.1f} s  {error:+.4%}  {same}", flush=True)
    print(f"{'':16}{best['change']}", flush=True)


def tracked(words: list[str]) -> dict[str, float]:
    """Ask torch's MemTracker, which gives no figure where it fails, and accelerate."""
    with FakeTensorMode():
        training = step_models.Training(*words)
        tracker = MemTracker()
        tracker.track_external(training.model, training.optimizer)
        try:
            with tracker:
                for _ in range(2):
                    training.step()
                    tracker.reset_mod_stats()
            peak = max(sizes["Total"] for sizes in tracker.get_tracker_snapshot("peak").values())
        except Exception as error:
            print(error, file=sys.stderr)
            peak = 0
    return {"peak_bytes": peak, "accelerate": estimated(training.model)}


def estimated(net: torch.nn.Module) -> int:
    """Ask accelerate what training with Adam takes; 0 where it is not installed."""
    if find_spec("accelerate") is None:
        return 0
    return int(4 * import_module("accelerate.utils").calculate_maximum_sizes(net)[0])


def run(*words: str) -> tuple[dict[str, Any], float, float]:
    """Run a verb of ours."""
    return measured([sys.executable, "-m", "gradinspect", *words])


def measured(command: list[str]) -> tuple[dict[str, Any], float, float]:
    """Run a command: what it printed, its seconds of processor time, and its memory in MiB."""
    child = "import json, resource, subprocess, sys; subprocess.run(sys.argv[1:]); "
    child += (
        "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(json.dumps([u.ru_utime + u.ru_stime, u.ru_maxrss]))"
    )
    done = subprocess.run([sys.executable, "-c", child, *command], capture_output=True, text=True, check=True)
    text, _, usage = done.stdout.rstrip().rpartition("\n")
    seconds, used = json.loads(usage)
    try:
        return json.loads(text[text.index("{") :]), seconds, used / 1024
    except ValueError:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}") from None


def percentile(values: list[float], share: int) -> float:
    """Return the value that so many percent are not above."""
    return sorted(values)[min(len(values) - 1, len(values) * share // 100)]


if __name__ == "__main__":
    main()
