"""Record the graph that backward builds under create_graph, instead of the graph that it runs."""

import dataclasses
from collections.abc import Sequence

import torch

from gradinspect.observers.stepping.synthetic_backward import starting_gradients
from gradinspect.recording.capture import record_graph
from gradinspect.recording.second_order import gradients_with_graph
from gradinspect.runner.run import Recorded, Run


def record_second_graph(run: Run, first: Recorded, gradients: Sequence[torch.Tensor | None] | None) -> Recorded:
    """Run our own backward under create_graph, and record the graph of the gradients.

    Args:
        run: The run.
        first: The graph to run backward on.
        gradients: The gradient that each output starts with; None: ones.
    """
    run.stop_recording()
    with run.process_state.restored():
        with run.interceptor.closed():
            starts = starting_gradients(first.outputs, gradients)
            outputs, makers = gradients_with_graph(first.graph, first.outputs, starts, run.recorder.others)
        moment = dataclasses.replace(first.moment, makers=makers)
        return Recorded(record_graph(outputs, moment, run.recorder), outputs, moment)
