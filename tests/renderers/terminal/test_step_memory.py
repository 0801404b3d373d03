"""The page of a step's memory: at 80 columns, and where there is no room or no Unicode."""

import pytest
from msgspec.structs import replace
from step_record import two_devices

from gradinspect.analyses.memory.step import AliveRow, CurvePoint, Origin, StepMemory, StepPeak
from gradinspect.renderers.terminal.memory.step import StepMemoryPage, curve_lines

AT = Origin(
    step=2, phase="backward", op="aten.mul.Tensor", node="MulBackward0", module="body.0", line="train.py:5",
    code="return self.head(x) * " + "x" * 80,
)  # fmt: skip
MEMORY = StepMemory(
    source="train.py", torch_version="2.13.0", is_real=False, asked=2, peak_bytes=3 * 2**20, at=AT,
    alive=(
        AliveRow(kind="parameter", name="body.0.weight", num_bytes=2**21, num_storages=1, made=AT),
        AliveRow(kind="temporary", name="", num_bytes=2**20, num_storages=1, made=AT),
    ),
    steps=(StepPeak(number=2, peak_bytes=3 * 2**20, at=AT, end_bytes=2**21),),
    curve=(
        *(CurvePoint(step=2, phase="forward", num_bytes=n * 2**18, by_kind={"saved": n * 2**18}) for n in range(10)),
        *(
            CurvePoint(step=2, phase="backward", num_bytes=n * 2**18, by_kind={"saved": n * 2**18})
            for n in range(12, 0, -1)
        ),
    ),
    notes=("A note.",),
)  # fmt: skip


def page(limit: int | None, *, width: int = 80, unicode: bool = True) -> list[str]:
    """Write the page."""
    return [line.plain for line in StepMemoryPage(width=width, unicode=unicode).lines(MEMORY, limit, "module")]


def test_the_first_line_says_whether_it_fits() -> None:
    """With the peak and the limit."""
    assert page(None)[0] == "Peak: 3.0 MiB (predicted), train.py"
    assert page(2**22)[0] == "It fits: peak 3.0 MiB (predicted), limit 4.0 MiB, train.py"
    assert page(2**21)[0] == "It does not fit: peak 3.0 MiB (predicted), limit 2.0 MiB, train.py"


def test_the_moment_comes_next_then_notes_and_what_is_not_counted_last() -> None:
    """Phase, module, node and operator, then the line, and what changes the meaning of the figures; then these."""
    lines = page(None)

    assert lines[1] == "  backward of step 2, module body.0, MulBackward0, aten.mul.Tensor"
    assert lines[2].startswith("  train.py:5  return self.head(x) * xx")
    assert lines[3:5] == ["  A note.", ""]
    assert lines.count("  A note.") == 1
    assert " ".join(lines[-3:]).startswith("Not counted: scratch memory inside kernels")


def test_a_line_of_a_package_is_followed_by_the_programs_own() -> None:
    """A peak in an installed package was reached from a line of the program."""
    at = replace(AT, line="einops/_backends.py:96", code="return x.reshape(shape)", called_at="model.py:63  x = mix(x)")
    lines = [
        line.plain for line in StepMemoryPage(width=80, unicode=True).lines(replace(MEMORY, at=at), None, "module")
    ]

    assert lines[2:4] == ["  einops/_backends.py:96  return x.reshape(shape)", "    called at model.py:63  x = mix(x)"]


def test_what_would_have_to_go_is_listed_only_where_it_does_not_fit() -> None:
    """With its share of the peak."""
    assert "To fit, 1.0 MiB of this would have to go:" in page(2**21)
    assert not any("would have to go" in line for line in page(2**22))
    assert any(line.split() == ["body.0:", "parameters", "2.0", "MiB", "67%"] for line in page(2**21))


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_wider_than_the_screen(width: int, unicode: bool) -> None:
    """And without Unicode all of it is ASCII."""
    lines = page(2**21, width=width, unicode=unicode)

    assert max(map(len, lines)) <= width
    assert unicode or "".join(lines).isascii()


def test_the_curve_shows_its_highest_point_and_its_phases() -> None:
    """One column of bars for some points, and below it where each phase begins."""
    bars, phases = curve_lines(MEMORY.curve, 78, unicode=True)

    assert bars == " ▁▂▂▃▄▄▅▆▆██▇▆▆▅▄▄▃▂▂▁"
    assert phases == "|forward  |backward"
    assert curve_lines((), 78, unicode=True) == []


def test_a_phase_is_named_in_full_or_briefly_and_never_cut() -> None:
    """Of a short one at least its beginning is marked."""

    def labels(**counts: int) -> str:
        phases = [phase for phase, count in counts.items() for _ in range(count)]
        points = [replace(MEMORY.curve[0], phase=phase.replace("_", " "), num_bytes=1) for phase in phases]
        return curve_lines(points, 78, unicode=True)[1]

    assert labels(setup=6, forward=8, backward=9, optimizer=10, after_step=1) == ("|setup|forward|backward|optimizer|")
    assert labels(setup=5, forward=7, backward=8, optimizer=4, after_step=6) == "|set |fwd   |bwd    |opt|after"
    assert labels(forward=2, backward=2, optimizer=1) == "|f|b|"


def test_devices_are_shown_apart() -> None:
    """The verdict names the fullest accelerator; the others have tables of their own, the CPU a line."""
    text = [line.plain for line in StepMemoryPage(width=80).lines(two_devices(), 4096, "module")]

    assert text[0] == "It does not fit: peak 7.0 KiB on cuda:1 (measured), limit 4.0 KiB, train.py"
    assert [line.split() for line in text if line.startswith("  cuda:1  ")] == [
        ["cuda:1", "backward", "of", "step", "1", "7.0", "KiB"]
    ]
    assert [line.split()[-2:] for line in text if line.startswith("  cpu  ")] == [["8.8", "KiB"]]
    assert [line for line in text if "at the peak" in line] == [
        "at the peak on cuda:1, by kind", "at the peak on cuda:0, by kind"
    ]  # fmt: skip
    assert "cuda:0: peak 3.5 KiB" in text


def test_equal_blocks_have_a_range_or_the_odd_one_if_there_is_room() -> None:
    """A name is never cut for it."""

    def rows(*sizes: int, width: int = 80, name: str = "h") -> list[str]:
        alive = tuple(
            AliveRow(kind="parameter", name=f"{name}.{n}.weight", num_bytes=size, num_storages=1,
                     made=Origin(step=0, phase="setup", module=f"{name}.{n}"))
            for n, size in enumerate(sizes)
        )  # fmt: skip
        memory = replace(MEMORY, peak_bytes=sum(sizes), alive=alive)
        lines = StepMemoryPage(width=width).lines(memory, None, "module")
        return [line.plain.split("   ")[0].strip() for line in lines if f"{name}.0" in line.plain]

    assert rows(512, 512, 512) == ["h.0-2 ×3, 512 B each"]
    assert rows(512, 1024, 768) == ["h.0-2 ×3, 512 B..1.0 KiB each"]
    assert rows(512, 512, 5120) == ["h.0-2 ×3, h.2: 10.0 times the others"]
    assert rows(512, 512, 5120, name="transformer.layers") == ["transformer.layers.0-2 ×3, 512 B..5.0 KiB each"]
    assert rows(512, 512, 5120, width=60) == ["h.0-2 ×3, h.2: 10.0 times the others"]
    assert rows(512, 512, 512, width=40) == ["h.0-2 ×3"]
