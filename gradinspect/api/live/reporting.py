"""`report`: the headlines of a training step, in the caller's process."""

from collections.abc import Callable
from typing import Final

from gradinspect.api.live.checking import MOST_STEPS
from gradinspect.api.live.session import LiveSession
from gradinspect.api.live.stepping import call_step, name_of_step, no_backward
from gradinspect.checks.evidence.overview_observer import OverviewObserver
from gradinspect.checks.overview import Overview
from gradinspect.observers.memory.step_memory_observer import MOST_STEPS as MOST_MEASURED
from gradinspect.runner.run import Run

ROUNDS: Final = MOST_STEPS + MOST_MEASURED + 1  # a step is over when the next one begins


def report(step: Callable[[], object]) -> Overview:
    """Run a training step several times, and return the headlines: graph, memory, problems, gradients, and the peak.

    The step runs for real, at most 25 times, so the model learns and the optimizer steps. It is checked until each
    optimizer has stepped twice, and meanwhile the memory of the second and the third step is measured. On the CPU that
    counts what models and optimizers hold, and what a step allocates, as `fit` does.

    Args:
        step: A function without arguments: forward, backward, and the optimizer's step, if there is one.

    Returns:
        `graph`, `findings` and `step_memory`, as `capture`, `check` and `fit` return them, from one run. `str(...)` is
        the report, as `gradinspect train.py` prints it.

    Raises:
        GradInspectError: No backward was called and nothing with a graph was returned.
    """
    name = name_of_step(step)
    observers: list[OverviewObserver] = []

    def make_observer(run: Run) -> OverviewObserver:
        observers.append(OverviewObserver(run, is_under_way=True))
        return observers[0]

    with LiveSession(make_observer, name) as session:
        for number in range(ROUNDS):
            if number == MOST_STEPS:
                observers[0].end_checks()  # an optimizer of another cell may never step
            if not call_step(session, step) or session.observer.has_enough:
                break
    found = session.result()
    if found is None:
        raise no_backward(name)
    return found
