"""Assertions for a test suite; a failing one shows the report of `check`, or what is held.

`from gradinspect.testing import assert_trains` in any test. torch is imported when one of them is called.
"""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from gradinspect.analyses.memory.held import measure_memory
from gradinspect.analyses.memory.step import on_device
from gradinspect.api.answers import diff
from gradinspect.api.files import load, save
from gradinspect.api.showing import memory_page, step_memory_page
from gradinspect.graph import Graph
from gradinspect.units import format_beside, parse_bytes

# ruff: noqa: PLC0415  # a test suite that does not use them pays for nothing

UPDATE: Final = "GRADINSPECT_UPDATE"  # the environment variable that --gradinspect-update sets
MAX_ROWS: Final = 8


def assert_trains(step: Callable[[], object], *, steps: int | None = None) -> None:
    """Assert that every parameter of the models that a training step calls gets a gradient.

    Within the steps, backward must reach each parameter that requires grad, with a gradient that is finite and not all
    zero at least once. The step runs for real.

    Args:
        step: A function without arguments, as of `gradinspect.check`.
        steps: How often to call it; by default until all is known, at most 12 times.

    Raises:
        AssertionError: A parameter does not learn; the report of `check` follows.
        GradInspectError: No backward was called and nothing with a graph was returned.

    Warns:
        UserWarning: A parameter got gradients, but none could be measured.
    """
    __tracebackhide__ = True
    from gradinspect.api.live.checking import check_training

    checked = check_training(step, steps)
    if checked.unlearned or checked.failed:
        names = _listed(checked.unlearned)
        what = f"No finite gradient other than zero reaches {names}." if names else "The step fails."
        _fail(f"{what}\n\n{checked.findings}")
    if checked.unmeasured:
        names, reason = _listed(tuple(checked.unmeasured)), next(iter(checked.unmeasured.values()))
        warnings.warn(
            f"Whether {names} learns is not known, since no gradient of it was measured: {reason}.", stacklevel=2
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_ROWS} more" if len(names) > MAX_ROWS else ""
    return f"{', '.join(names[:MAX_ROWS])}{more}"


def assert_no_findings(
    step: Callable[[], object], *, only: Sequence[str] = (), skip: Sequence[str] = (), steps: int | None = None
) -> None:
    """Assert that `gradinspect.check` finds nothing wrong with a training step.

    Args:
        step: A function without arguments, as of `gradinspect.check`.
        only: Codes to look for, such as `"GI101"` or `"GI3"`; by default all.
        skip: Codes not to look for.
        steps: How often to call it; by default until all is known, at most 12 times.

    Raises:
        AssertionError: Something was found; the report follows.
        GradInspectError: A code is unknown, or no backward was called and nothing with a graph was returned.
    """
    __tracebackhide__ = True
    from gradinspect.api.live.checking import check

    found = check(step, select=only, skip=skip, steps=steps)
    if found:
        _fail(str(found))


def assert_saved_below(loss: object, limit: int | str) -> None:
    """Assert that the graph of a loss holds at most so much memory for backward, beside parameters and buffers.

    Args:
        loss: A tensor, any container of tensors, or a `Graph`.
        limit: Bytes, or a text such as `"64 MiB"`.

    Raises:
        AssertionError: It holds more; what holds most follows.
        GradInspectError: Nothing has a graph, or the limit cannot be read.
    """
    __tracebackhide__ = True
    most = parse_bytes(limit) if isinstance(limit, str) else limit
    graph = _graph_of(loss)
    memory = measure_memory(graph)
    if memory.extra_bytes > most:
        held, most_held = format_beside(memory.extra_bytes, most), format_beside(most, memory.extra_bytes)
        head = f"{held} are held for backward, more than {most_held}."
        _fail(f"{head}\n\n{memory_page(graph, memory, max_rows=MAX_ROWS)}")


def assert_peak_below(step: Callable[[], object], limit: int | str, *, steps: int = 2) -> None:
    """Assert that a whole training step needs at most so much memory at its peak, as `gradinspect.fit` measures it.

    Args:
        step: A function without arguments: forward, backward, and the optimizer's step.
        limit: Bytes, or a text such as `"2 GiB"`, of the fullest accelerator, or of the CPU if the step uses none.
        steps: How many steps to measure.

    Raises:
        AssertionError: It needs more; what is alive at the peak follows.
        GradInspectError: No backward was called and nothing with a graph was returned, or the limit cannot be read.
    """
    __tracebackhide__ = True
    from gradinspect.api.live.fitting import fit

    most = parse_bytes(limit) if isinstance(limit, str) else limit
    memory = fit(step, steps=steps)
    if memory.peak_bytes > most:
        peak = f"{format_beside(memory.peak_bytes, most)}{on_device(memory)}"
        head = f"The peak of a step is {peak}, more than {format_beside(most, memory.peak_bytes)}."
        _fail(f"{head}\n\n{step_memory_page(memory, most)}")


def assert_graph_matches(loss: object, golden: str | os.PathLike[str]) -> None:
    """Assert that the graph of a loss is that of a golden file: the same nodes, edges, shapes, leaves and modules.

    Source lines, bytes, saved numbers and the order of nodes do not count. `pytest --gradinspect-update` writes the
    file.

    Args:
        loss: A tensor, any container of tensors, or a `Graph`.
        golden: A capture file; a relative path is relative to the file of the test.

    Raises:
        AssertionError: They differ, and the report of `diff` follows; or the file does not exist.
        GradInspectError: Nothing has a graph, or the file cannot be read.
    """
    __tracebackhide__ = True
    graph, file = _graph_of(loss), _beside(golden, sys._getframe(1))
    if os.environ.get(UPDATE):
        save(graph, file, overwrite=True)
        return
    if not file.is_file():
        _fail(f"The golden file '{golden}' does not exist. Write it: pytest --gradinspect-update")
    found = diff(load(file), graph, ignore=["bytes", "lines", "order", "values"])
    if not found.is_empty:
        _fail(f"The graph differs from '{golden}'. If that is wanted: pytest --gradinspect-update\n\n{found}")


def _graph_of(loss: object) -> Graph:
    if isinstance(loss, Graph):
        return loss
    from gradinspect.api.live.recording import capture

    return capture(loss)


def _beside(golden: str | os.PathLike[str], frame: FrameType) -> Path:
    return Path(frame.f_code.co_filename).parent / golden


def _fail(text: str) -> NoReturn:
    __tracebackhide__ = True
    raise AssertionError(text)
