"""How far compiled programs that are right are off, beside rounding: `python benchmarks/compiled.py PROGRAM...`.

Prints, for each program, the largest ratio of what a value is off by to what other roundings make it off by, of values
that are off by more than `UNITS` units of their norm; and the seconds of each run. Bound: `FACTOR`, and more for a
single number.
"""

import sys
import tempfile
import time
from dataclasses import replace

from gradinspect.analyses.diff.compiled import UNIT_OF, UNITS, StepValues
from gradinspect.cli.options.sources import parse_one
from gradinspect.cli.running import questions
from gradinspect.cli.running.compiled_runs import ROUNDINGS
from gradinspect.cli.running.forked_runs import ForkedRuns
from gradinspect.request import CompiledRun


def main() -> None:
    """Run each program."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            print(name, measured(name, folder), flush=True)


def measured(name: str, folder: str) -> str:
    """Run a program in eager, with other roundings, and compiled, and describe what was seen."""
    request = parse_one(name, [name], ()).request
    runs, how = ForkedRuns(request), CompiledRun(folder=folder)
    seconds: list[float] = []

    def run(how: CompiledRun, *, eager: bool) -> StepValues:
        began = time.perf_counter()
        found = runs.run(replace(request, eager=eager), questions.step_values(how), StepValues, is_silent=True)
        seconds.append(time.perf_counter() - began)
        return found

    how = replace(how, num_calls=len(run(replace(how, keeps=True), eager=True).calls))
    noise: dict[tuple[object, ...], float] = {}
    for number in ROUNDINGS:
        for value in run(replace(how, rounding=number), eager=True).values:
            noise[value.key] = max(noise.get(value.key, 0.0), value.error)
    compiled = run(how, eager=False)
    ratios = [
        value.error / noise[value.key] if noise[value.key] else float("inf")
        for value in compiled.values
        if value.key in noise and value.error > UNITS * UNIT_OF.get(value.dtype, 0.0) * value.norm
    ]
    largest = f"{max(ratios):.2f} of {len(ratios)}" if ratios else "none above the floor"
    times = ", ".join(f"{one:.1f}" for one in seconds)
    return f"{len(compiled.values)} values, {compiled.num_graphs} graphs, ratio {largest}, seconds {times}"


if __name__ == "__main__":
    main()
