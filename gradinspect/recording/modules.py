"""Assign nodes to module calls, by the recorder's windows."""

from collections import Counter
from collections.abc import Sequence

from gradinspect.graph import ModuleCall
from gradinspect.recording.names import Names
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.threads import NOWHERE
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR


def assign_modules(
    recorder: Recorder, names: Names, sequence_nrs: Sequence[int]
) -> tuple[list[int | None], tuple[ModuleCall, ...]]:
    """Assign each node to the innermost module call whose window contains its sequence number.

    Args:
        recorder: The recording of the forward pass.
        names: Paths of the modules.
        sequence_nrs: Of the nodes, descending, AccumulateGrad last.

    Returns:
        For each node an index into the calls, or None; and the calls that have a node, callers first.
    """
    windows = recorder.module_windows
    of_nodes = _innermost(recorder, sequence_nrs)
    used: set[int] = set()
    for window in of_nodes:
        while window != NOWHERE and window not in used:
            used.add(window)
            window = windows[window].parent  # noqa: PLW2901  # walk up the callers
    index = {window: position for position, window in enumerate(sorted(used))}
    calls: Counter[int] = Counter()
    records = []
    for window in sorted(used):
        _, _, module, parent = windows[window]
        calls[module] += 1
        path, class_name = recorder.module_name(module, names)
        records.append(
            ModuleCall(
                path=path,
                class_name=class_name,
                call=calls[module],
                parent=None if parent == NOWHERE else index[parent],
            )
        )
    return [None if window == NOWHERE else index[window] for window in of_nodes], tuple(records)


def _innermost(recorder: Recorder, sequence_nrs: Sequence[int]) -> list[int]:
    """Find each node's innermost window, or NOWHERE, in one pass over nodes and windows."""
    windows = recorder.module_windows
    found = [NOWHERE] * len(sequence_nrs)
    next_window = 0
    open_windows: list[int] = []
    for number in range(len(sequence_nrs) - 1, -1, -1):  # ascending sequence numbers
        sequence_nr = sequence_nrs[number]
        if sequence_nr == ACCUMULATE_GRAD_NR:
            continue
        while next_window < len(windows) and windows[next_window].start <= sequence_nr:
            if windows[next_window].end > sequence_nr or windows[next_window].end == NOWHERE:
                open_windows.append(next_window)
            next_window += 1
        while open_windows and NOWHERE < windows[open_windows[-1]].end <= sequence_nr:
            open_windows.pop()
        if open_windows:
            found[number] = open_windows[-1]
    return found
