"""What is alive at the peak of a step: by kind, by module, by line, and what would have to go."""

from gradinspect.analyses.memory.step import (
    AliveRow,
    Origin,
    PeakGroup,
    StepMemory,
    bytes_by_kind,
    folded_groups,
    groups_by,
    moment_name,
    to_make_room,
)


def memory(*alive: AliveRow) -> StepMemory:
    """Make a record of what is alive."""
    peak = sum(row.num_bytes for row in alive)
    return StepMemory(
        source="train.py", torch_version="2.13.0", is_real=False, asked=2, peak_bytes=peak,
        at=Origin(step=2, phase="backward"), alive=alive, steps=(), curve=(),
    )  # fmt: skip


WEIGHT = AliveRow(
    kind="parameter", name="body.0.weight", num_bytes=400, num_storages=1,
    made=Origin(step=0, phase="setup", module="body.0", line="train.py:3", code="nn.Linear(10, 10)"),
)  # fmt: skip
STATE = AliveRow(
    kind="optimizer_state", name="body.0.weight", num_bytes=800, num_storages=2,
    made=Origin(step=1, phase="optimizer", module="body.0", line="train.py:9"),
)  # fmt: skip
LOGITS = AliveRow(
    kind="saved", name="", num_bytes=500, num_storages=1,
    made=Origin(step=2, phase="forward", op="aten.addmm.default", module="head", line="train.py:5"),
)  # fmt: skip
PASSING = AliveRow(
    kind="temporary", name="", num_bytes=40, num_storages=1,
    made=Origin(step=2, phase="backward", op="aten.mul.Tensor", node="MulBackward0"),
)  # fmt: skip
ALL = memory(WEIGHT, STATE, LOGITS, PASSING)


def test_each_grouping_adds_up_to_the_peak() -> None:
    """No byte is left out, and none is counted twice."""
    for by in ("kind", "module", "line", "phase", "storage"):
        assert sum(group.num_bytes for group in groups_by(ALL, by)) == ALL.peak_bytes
    assert sum(bytes_by_kind(ALL).values()) == ALL.peak_bytes


def test_groups_are_named_and_sorted() -> None:
    """The largest first; what has no module or line says so."""
    assert [(group.label, group.num_bytes) for group in groups_by(ALL, "module")] == [
        ("body.0", 1200), ("head", 500), ("(no module)", 40),
    ]  # fmt: skip
    assert [group.label for group in groups_by(ALL, "line")] == ["train.py:9", "train.py:5", "train.py:3", "(no line)"]
    assert [group.label for group in groups_by(ALL, "storage")] == [
        "body.0.weight (optimizer state)", "aten.addmm.default (saved)", "body.0.weight", "MulBackward0 (temporary)",
    ]  # fmt: skip


def test_many_modules_are_shown_less_deep() -> None:
    """As deep as leaves few enough rows."""
    rows = [
        AliveRow(
            kind="parameter", name=f"h.{n}.up.weight", num_bytes=1, num_storages=1,
            made=Origin(step=0, phase="setup", module=f"h.{n}.up"),
        )
        for n in range(50)
    ]  # fmt: skip

    assert [group.label for group in groups_by(memory(*rows), "module")] == ["h"]


def test_equal_blocks_are_one_row() -> None:
    """Those that hold as much each; one that holds more stays apart, and so do two."""
    sizes = [7, 7, 9, 7, 7]
    groups = [PeakGroup(f"net.h.{n}", size, 1) for n, size in enumerate(sizes)]
    others = [PeakGroup("net.tail.0", 3, 1), PeakGroup("net.tail.1", 3, 1), PeakGroup("(no module)", 1, 1)]

    assert folded_groups([*groups, *others]) == [
        (PeakGroup("net.h.0,1,3,4", 28, 4), 4), (PeakGroup("net.h.2", 9, 1), 1),
        *((other, 1) for other in others),
    ]  # fmt: skip


def test_what_would_have_to_go_is_as_large_as_what_is_too_much() -> None:
    """The fewest groups; none where the peak fits."""
    assert [(group.label, group.detail) for group in to_make_room(ALL, 900)] == [
        ("body.0", "optimizer state"), ("head", "saved for backward"),
    ]  # fmt: skip
    assert to_make_room(ALL, ALL.peak_bytes) == ()


def test_moments_are_said_in_words() -> None:
    """Each phase has its own."""
    assert moment_name(Origin(step=0, phase="setup")) == "before the first step"
    assert moment_name(Origin(step=2, phase="backward")) == "backward of step 2"
    assert moment_name(Origin(step=1, phase="optimizer")) == "optimizer step of step 1"
