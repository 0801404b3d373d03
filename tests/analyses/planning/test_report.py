"""What is said of the plans for a program."""

import pytest

from gradinspect.analyses.memory.step import Origin
from gradinspect.analyses.planning.changes import Checkpoint, CheckpointSegments
from gradinspect.analyses.planning.report import describe_moment


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (Origin(phase="backward", step=1, module="2", node="AddmmBackward0"), "the gradient of net.2"),
        (Origin(phase="backward", step=1, module="h.2", node="AddmmBackward0"), "the gradient of h.2"),
        (Origin(phase="backward", step=1, node="AddmmBackward0", line="a.py:3"), "the gradient of Addmm, a.py:3"),
        (Origin(phase="forward", step=1, module="0.mlp"), "the forward of net.0.mlp"),
        (Origin(phase="optimizer", step=2), "optimizer step of step 2"),
    ],
)
def test_a_moment_names_its_module_as_other_screens_do(at: Origin, expected: str) -> None:
    """No index stands without what it is an index of."""
    assert describe_moment(at, "net") == expected


def test_a_change_names_its_modules_as_other_screens_do() -> None:
    """No index stands without what it is an index of."""
    blocks = Checkpoint(root=0, paths=("0", "1"), class_name="Block", num_alike=2, prefix="net.")
    segments = CheckpointSegments(root=0, path="", class_name="Sequential", starts=(0, 2), prefix="net.")

    assert blocks.describe("×") == "checkpoint net.0-1 Block ×2"
    assert segments.describe("×") == "checkpoint net Sequential in 2 segments, all but the last"
