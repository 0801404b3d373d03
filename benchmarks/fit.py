"""Compare what `fit` predicts with what the allocator reports, and with other tools: `python benchmarks/fit.py`.

Sixty programs, drawn once and for all: six models, four optimizers in three loops each, with and without autocast,
accumulation, clipping, EMA and checkpointing. `12 30` runs programs 12 to 29. `--plans` plans for each model
instead, and tries the cheapest plan. Each number comes from a process of its own, whose processor time is that of the
tool. What is measured is what the allocator gave out, as `fit --real` follows it; torch's profiler, its events added
up, is a second witness. MemTracker is torch's own estimator, on fake tensors; accelerate's estimate (four times the
weights, for Adam) is printed where it is installed. DeepSpeed's is its formula for one GPU: `deepspeed_estimate`. Both
are for the state of a model, and know no activations.
"""

import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate, combinations, product
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

import step_models
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.profiler import ProfilerActivity, profile

MODELS = Path(__file__).parent / "step_models.py"
NUM_PROGRAMS = 60
LIMIT_SHARE = 0.8  # of the plain peak, for plans


def main() -> None:
    """Print the tables."""
    if "--tracker" in sys.argv:
        print(json.dumps(tracked(sys.argv[2:])))
    elif "--profiler" in sys.argv:
        print(json.dumps(profiled(sys.argv[2:])))
    elif "--plans" in sys.argv:
        for model in step_models.MODELS:
            plan(model)
    else:
        compare(range(*map(int, sys.argv[1:])) if sys.argv[1:] else range(NUM_PROGRAMS))


def compare(numbers: range) -> None:
    """Print a row for each program, and how far off each tool is."""
    found: dict[str, list[Guess]] = {}
    print(f"{'program':72}{'allocator':>14}  error, and seconds of each tool")
    drawn = programs()
    for number in numbers:
        real, guesses = row(drawn[number])
        shown = []
        for tool, guess in guesses.items():
            share = (guess.peak_bytes - real) / real
            found.setdefault(tool, []).append(Guess(abs(share), guess.seconds))
            shown.append(f"{tool} {share:+.3%}" + (f" {guess.seconds:.1f} s" if guess.seconds else ""))
        print(f"{' '.join(drawn[number]):72}{real:14,}  {', '.join(shown)}", flush=True)
    for tool, guesses_of in found.items():
        shares, seconds = ([guess[place] for guess in guesses_of] for place in range(2))
        times = f"  {median(seconds):.1f} s, at most {max(seconds):.1f} s" if any(seconds) else "  a formula"
        share = f"median {median(shares):.3%}  p95 {percentile(shares, 95):.3%}  most {max(shares):.3%}"
        print(f"{tool:12}{share}  of {len(shares)}{times}")


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


class Guess(NamedTuple):
    """What a tool says of a program, or how far off it is."""

    peak_bytes: float
    seconds: float = 0.0  # of processor time; 0: a formula


def row(words: list[str]) -> tuple[int, dict[str, Guess]]:
    """Measure one program in each way; a tool that fails says nothing."""
    real = run("fit", str(MODELS), "--real", "--format", "json", "--", *words)[0]["peak_bytes"]
    fit, fit_s, _ = run("fit", str(MODELS), "--format", "json", "--", *words)
    tracker, tracker_s, _ = measured([sys.executable, __file__, "--tracker", *words])
    profiler, profiler_s, _ = measured([sys.executable, __file__, "--profiler", *words])
    guesses = {
        "fit": Guess(fit["peak_bytes"], fit_s),
        "profiler": Guess(profiler["peak_bytes"], profiler_s),
        "MemTracker": Guess(tracker["peak_bytes"], tracker_s),
        "accelerate": Guess(tracker["accelerate"]),
        "DeepSpeed": Guess(tracker["deepspeed"]),
    }
    return real, {tool: guess for tool, guess in guesses.items() if guess.peak_bytes}


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
    deepspeed = deepspeed_estimate(sum(parameter.numel() for parameter in training.model.parameters()))
    return {"peak_bytes": peak, "accelerate": estimated(training.model), "deepspeed": deepspeed}


def profiled(words: list[str]) -> dict[str, int]:
    """Run steps under torch's profiler, and add up what its events say was given out and taken back."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        training = step_models.Training(*words)
        for _ in range(2):
            training.step()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    sizes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return {"peak_bytes": max(accumulate(sizes))}


def deepspeed_estimate(num_parameters: int) -> int:
    """Estimate as DeepSpeed does for ZeRO-2 on one GPU, without offload: 20 bytes a parameter, for Adam in fp16.

    Source: `estimate_zero2_model_states_mem_needs` in deepspeed/runtime/zero/stage_1_and_2.py.
    """
    return 4 * num_parameters + 16 * num_parameters


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
