"""Compare what `fit` predicts with what the allocator reports, and with other tools: `python benchmarks/fit.py`.

Sixty programs, drawn once and for all: six models, four optimizers in three loops each, with and without autocast,
accumulation, clipping, EMA and checkpointing. `12 30` runs programs 12 to 29. `--plans` plans for each model
instead, and tries the cheapest plan. Each number comes from a copy of this process, which has imported torch and our
package: its processor time is that of the program and the tool, without imports. What is measured is what the allocator
gave out, as `fit --real` follows it; torch's profiler, its events added up, is a second witness. MemTracker is torch's
own estimator, on fake tensors; accelerate's estimate (four times the weights, for Adam) is printed where it is
installed. DeepSpeed's is its formula for one GPU: `deepspeed_estimate`. Both are for the state of a model, and know no
activations. What a tool says where it has no number goes to stderr.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

import step_models
import torch
from many_fits import allocated, asked, copied, found_in, import_all, why_of
from torch.distributed._tools.mem_tracker import MemTracker

MODELS = Path(__file__).parent / "step_models.py"
NUM_PROGRAMS = 60
LIMIT_SHARE = 0.8  # of the plain peak, for plans
LIMIT_S = 600  # for each copy


def main() -> None:
    """Print the tables."""
    import_all()
    if "--plans" in sys.argv:
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
        if not real:
            continue
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
    program = [MODELS.name, *words]
    real = answer(lambda: asked("fit", program, "--real")).peak_bytes
    net = step_models.MODELS[words[0]][0]()
    guesses = {
        "fit": answer(lambda: asked("fit", program)),
        "profiler": answer(lambda: allocated(program)),
        "MemTracker": answer(lambda: tracked(words)),
        "accelerate": Guess(estimated(net)),
        "DeepSpeed": Guess(deepspeed_estimate(sum(parameter.numel() for parameter in net.parameters()))),
    }
    return int(real), {tool: guess for tool, guess in guesses.items() if guess.peak_bytes}


def answer(work: Callable[[], None]) -> Guess:
    """Do what prints a peak, in a copy of this process; the peak is 0 where it fails, and stderr says why."""
    ran = copied(work, MODELS.parent, LIMIT_S)
    found = found_in(ran)
    if not found:
        print(why_of(ran), file=sys.stderr)
    return Guess(found.get("peak_bytes", 0), ran.cpu_s)


def plan(model: str) -> None:
    """Plan for four fifths of a model's peak, and try it."""
    program = [MODELS.name, model, "AdamW"]
    limit = str(int(LIMIT_SHARE * answer(lambda: asked("fit", program)).peak_bytes))
    ran = copied(lambda: asked("plan", program, "--fit", limit, "--try"), MODELS.parent, LIMIT_S)
    found = found_in(ran)
    if not found.get("plans"):
        print(f"{model:8}{ran.cpu_s:6.1f} s  {found.get('sentence') or why_of(ran)}", flush=True)
        return
    best = found["plans"][0]
    error = (best["peak_bytes"] - best["measured_peak_bytes"]) / best["measured_peak_bytes"]
    same = f"FLOPs x{best['flops_ratio']:.2f}  bit-equal {best['bit_equal']}"
    print(f"{model:8}{ran.cpu_s:6.1f} s  {error:+.4%}  {same}", flush=True)
    print(f"{'':16}{best['change']}", flush=True)


def tracked(words: list[str]) -> None:
    """Ask torch's MemTracker, and print the peak."""
    training = step_models.Training(*words)
    tracker = MemTracker()
    tracker.track_external(training.model, training.optimizer, *filter(None, [training.average]))
    make_input = training.make_input

    def batch() -> torch.Tensor:
        tracker.reset_mod_stats()  # it follows a model through one call
        return make_input()

    training.make_input = batch
    with tracker:
        for _ in range(2):
            training.step()
    print("\n" + json.dumps({"peak_bytes": max(at["Total"] for at in tracker.get_tracker_snapshot("peak").values())}))


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


def percentile(values: list[float], share: int) -> float:
    """Return the value that so many percent are not above."""
    return sorted(values)[min(len(values) - 1, len(values) * share // 100)]


if __name__ == "__main__":
    main()
