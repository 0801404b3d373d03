"""A record of the memory of whole steps, made by hand: two points forward, the peak, one point after it."""

from msgspec.structs import replace

from gradinspect.analyses.memory.step import (
    AliveRow,
    CurvePoint,
    DeviceSteps,
    Origin,
    Span,
    StepMemory,
    StepPeak,
)

FORWARD = Origin(step=1, phase="forward", op="aten.mm.default", module="0", line="train.py:7", code="x = layer(x)")
AT = Origin(step=1, phase="backward", node="MulBackward0", module="body.0", line="train.py:9", code="loss.backward()")


def step_record(source: str = "train.py", name: str = "body.weight") -> StepMemory:
    """Make it: 4096 bytes of a parameter to the end, 2048 saved until the peak, 1024 at the peak alone."""
    points = [("setup", 0, 4096, 0, 0), ("forward", 1, 4096, 2048, 0), ("backward", 1, 4096, 2048, 1024),
              ("backward", 1, 4096, 0, 0)]  # fmt: skip
    return StepMemory(
        source=source, torch_version="2.13.0", is_real=False, asked=1, peak_bytes=7168, at=AT,
        alive=(
            AliveRow(kind="parameter", name=name, num_bytes=4096, num_storages=1, made=FORWARD),
            AliveRow(kind="saved", name="", num_bytes=2048, num_storages=2, made=FORWARD),
            AliveRow(kind="temporary", name="", num_bytes=1024, num_storages=1, made=AT),
        ),
        steps=(StepPeak(number=1, peak_bytes=7168, at=AT, end_bytes=4096),),
        curve=tuple(
            CurvePoint(
                step=step, phase=phase, num_bytes=weights + saved + passing,  # type: ignore[arg-type]  # a phase
                by_kind={"parameter": weights, "saved": saved, "temporary": passing},
            )
            for phase, step, weights, saved, passing in points
        ),
        notes=("A note.",),
        spans=(
            Span(kind="parameter", name=name, num_bytes=4096, num_storages=1, made=FORWARD, first=0, last=3),
            Span(kind="saved", name="", num_bytes=2048, num_storages=2, made=FORWARD, first=1, last=2),
        ),
    )  # fmt: skip


def two_devices() -> StepMemory:
    """Make one with the same on the fuller of two devices, half as much on the other, and a little on the CPU."""
    record = step_record()
    half = DeviceSteps(
        on="cuda:0", peak_bytes=3584, at=FORWARD,
        alive=(AliveRow(kind="saved", name="", num_bytes=3584, num_storages=1, made=FORWARD),),
        steps=(StepPeak(number=1, peak_bytes=3584, at=FORWARD, end_bytes=0),),
        curve=(CurvePoint(step=1, phase="forward", num_bytes=3584, by_kind={"saved": 3584}),),
    )  # fmt: skip
    few = AliveRow(kind="input", name="x", num_bytes=9000, num_storages=1, made=FORWARD)
    host = replace(half, on="cpu", peak_bytes=9000, alive=(few,), curve=(), steps=())
    return replace(record, is_real=True, on="cuda:1", others=(host, half))
