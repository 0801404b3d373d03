"""`fit`: the peak of memory of a training step, measured in the caller's process."""

from collections.abc import Callable

from gradinspect.analyses.memory.step import StepMemory
from gradinspect.api.live.session import LiveSession
from gradinspect.api.live.stepping import call_step, name_of_step, no_backward
from gradinspect.observers.graphs.graphs_observer import GraphsObserver
from gradinspect.observers.memory.step_memory_observer import StepMemoryObserver
from gradinspect.observers.memory.storage_purposes import held_before


def fit(step: Callable[[], object], *, steps: int = 2) -> StepMemory:
    """Measure the peak of memory of a training step: what its models and optimizers hold, and what it allocates.

    The step runs for real, once more than asked: the first call shows which models and optimizers it uses. What other
    objects held before, such as the data that a step is given, is not counted on the CPU. On an accelerator all is, as
    its allocator counts it. Each device has a peak of its own, and they are never added.

    Args:
        step: A function without arguments: forward, backward, and the optimizer's step.
        steps: How many steps to measure. The state of an optimizer that is made in the first call is there in all.

    Returns:
        `peak_bytes`, and in `alive` what was alive at that moment, whose bytes add up to it, on the device `on`: the
        fullest accelerator, or the CPU where none is used. `others` has the same of each other device. `str(...)` is
        the report, as `gradinspect fit` prints it.

    Raises:
        GradInspectError: The step calls no backward and returns no tensor with a graph, or this torch cannot measure.
    """
    name = name_of_step(step)
    with LiveSession(lambda run: GraphsObserver(run, 0), name) as session:
        call_step(session, step)
    recorder = session.run.recorder  # no list of tensors: it would keep gradients alive that the step frees
    with LiveSession(lambda run: StepMemoryObserver(run, steps, held_before(recorder)), name) as measured:
        for _ in range(steps):
            call_step(measured, step)
    found = measured.result()
    if found is None:
        raise no_backward(name)
    return found
