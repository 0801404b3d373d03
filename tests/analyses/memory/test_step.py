"""What is alive at the peak of a step: by kind, by module, by line, and what would have to go."""

from msgspec.structs import replace

from gradinspect.analyses.memory.step import (
    AliveRow,
    Origin,
    StepMemory,
    bytes_by_kind,
    folded_groups,
    folded_room,
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
        ("body.0", 1200), ("head", 500), ("(outside modules)", 40),
    ]  # fmt: skip
    assert [group.label for group in groups_by(ALL, "line")] == ["train.py:9", "train.py:5", "train.py:3", "(no line)"]
    assert [group.label for group in groups_by(ALL, "storage")] == [
        "body.0.weight (optimizer state)", "aten.addmm.default (saved)", "body.0.weight", "MulBackward0 (temporary)",
    ]  # fmt: skip


def test_the_outermost_module_and_compiled_functions_have_rows_of_their_own() -> None:
    """Neither is outside of modules; what is known of a module counts before what is compiled."""
    origins = (
        Origin(step=2, phase="backward", is_outermost=True, is_compiled=True),
        Origin(step=2, phase="backward", module="head", is_compiled=True),
        Origin(step=2, phase="backward", is_compiled=True),
        Origin(step=2, phase="backward"),
    )
    rows = (
        AliveRow(kind="temporary", name="", num_bytes=40 - number, num_storages=1, made=made)
        for number, made in enumerate(origins)
    )

    found = memory(*rows)
    for name, label in (("", "(model itself)"), ("net", "(net itself)"), ("self", "(model itself)")):
        named = replace(found, model_name=name) if name else found
        assert [group.label for group in groups_by(named, "module")] == [
            label, "head", "(compiled functions)", "(outside modules)",
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


def parameter(path: str, name: str, num_bytes: int) -> AliveRow:
    """One of a module."""
    made = Origin(step=0, phase="setup", module=path)
    return AliveRow(kind="parameter", name=f"{path}.{name}", num_bytes=num_bytes, num_storages=1, made=made)


def test_a_module_that_was_called_has_its_class() -> None:
    """Those of two classes never share a row."""

    def output(path: str, num_bytes: int) -> AliveRow:
        return AliveRow(
            kind="saved", name="", num_bytes=num_bytes, num_storages=1,
            made=Origin(step=2, phase="forward", module=path),
        )  # fmt: skip

    rows = [output("act.0", 3), output("act.1", 3), output("mix.0", 5), output("mix.1", 5)]
    classes = {"act.0": "ReLU", "act.1": "ReLU", "mix.0": "GELU", "mix.1": "SiLU"}
    found = folded_groups(replace(memory(*rows), classes=classes), "module")

    assert [(group.label, group.class_name, len(same)) for group, same in found] == [
        ("act.0-1", "ReLU", 2), ("mix.0", "GELU", 1), ("mix.1", "SiLU", 1)
    ]  # fmt: skip
    assert [len(same) for _, same in folded_groups(memory(*rows), "module")] == [2, 2]


def labels(*rows: AliveRow) -> list[tuple[str, int, int]]:
    """Fold modules: their names, bytes, and how many."""
    return [(group.label, group.num_bytes, len(same)) for group, same in folded_groups(memory(*rows), "module")]


def test_equal_blocks_are_one_row_whatever_their_sizes() -> None:
    """However many: they are not shown less deep for it."""
    blocks = [parameter(f"net.h.{n}", name, size) for n in range(50) for name, size in (("weight", 4 + n), ("bias", 2))]
    others = [parameter(f"net.tail.{n}", "weight", 3) for n in range(2)]

    assert labels(*blocks, *others) == [("net.h.0-49", 1525, 50), ("net.tail.0-1", 6, 2)]


def test_equal_blocks_in_a_model_of_numbers_are_one_row() -> None:
    """`0.up` is shown as `model.0.up`, and its parameters are named by the path."""
    parts = [parameter(f"{n}.{part}", "weight", size) for n in range(3) for part, size in (("up", 5), ("down", 4))]

    assert labels(*parts) == [("model.0-2.up", 15, 3), ("model.0-2.down", 12, 3)]


def test_modules_with_other_parameters_are_no_equal_blocks() -> None:
    """A norm between linear layers has a weight as large as its bias; one without a bias has another name."""
    linear = [
        parameter(f"net.{n}", name, size) for n in (0, 2, 5) for name, size in (("weight", 8 * n + 8), ("bias", 2))
    ]
    norm = [parameter("net.1", name, 2) for name in ("weight", "bias")]

    assert labels(*linear, *norm, parameter("net.3", "weight", 8)) == [
        ("net.0,2,5", 86, 3), ("net.3", 8, 1), ("net.1", 4, 1),
    ]  # fmt: skip


def test_storages_are_one_row_if_they_hold_as_much() -> None:
    """One that holds more stays apart."""
    rows = [parameter(f"net.h.{n}", "weight", 9 if n == 2 else 7) for n in range(5)]
    found = folded_groups(memory(*rows), "storage")

    assert [(group.label, group.num_bytes, len(same)) for group, same in found] == [
        ("net.h.0,1,3,4.weight", 28, 4), ("net.h.2.weight", 9, 1),
    ]  # fmt: skip


def test_what_would_have_to_go_is_as_large_as_what_is_too_much() -> None:
    """The fewest groups; none where the peak fits."""
    assert [(group.label, group.detail) for group in to_make_room(ALL, 900)] == [
        ("body.0", "optimizer state"), ("head", "saved for backward"),
    ]  # fmt: skip
    assert to_make_room(ALL, ALL.peak_bytes) == ()


def test_equal_blocks_that_would_have_to_go_are_one_row() -> None:
    """With the bytes of all; what each is is the same, how much it has is not."""
    blocks = memory(*(parameter(f"net.h.{n}", "weight", 9 if n == 2 else 7) for n in range(5)))

    assert [(group.label, group.num_bytes, len(same)) for group, same in folded_room(blocks, 3)] == [
        ("net.h.0-4", 37, 5)
    ]


def test_moments_are_said_in_words() -> None:
    """Each phase has its own."""
    assert moment_name(Origin(step=0, phase="setup")) == "before the first step"
    assert moment_name(Origin(step=2, phase="backward")) == "backward of step 2"
    assert moment_name(Origin(step=1, phase="optimizer")) == "optimizer step of step 1"
