"""A stop is not reported as an error of the program where Python reports errors that nothing has caught."""

from pathlib import Path

import pytest
from runs import gradinspect

from gradinspect.runner.programs.program import without_our_frames

PREAMBLE = """
import asyncio, sys
import torch
model = torch.nn.Linear(2, 1)
async def train():
    for _ in range(3):
        model(torch.ones(3, 2)).sum().backward()
        await asyncio.sleep(0)
"""
PROGRAMS = {
    "gather": """
async def main():
    await asyncio.gather(train(), train())
asyncio.run(main())
""",
    "group": """
async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(train())
        group.create_task(train())
asyncio.run(main())
""",
    "forgotten": """
async def main():
    tasks = [asyncio.create_task(train()) for _ in range(2)]
    await asyncio.sleep(1)
asyncio.run(main())
""",
    "finalizer": """
class Trains:
    def __del__(self):
        model(torch.ones(3, 2)).sum().backward()
for _ in range(3):
    Trains()
""",
}
LEAVES = """
async def leave():
    model(torch.ones(3, 2)).sum().backward()
    await asyncio.sleep(0)
    sys.exit(5)
async def main():
    await asyncio.gather(leave(), leave())
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_printed_of_a_stop(name: str, tmp_path: Path) -> None:
    """Plain, these programs print nothing."""
    script = tmp_path / "train.py"
    script.write_text(PREAMBLE + PROGRAMS[name])
    result = gradinspect("trace", script.name, cwd=tmp_path, is_new=True)

    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.slow
def test_an_error_of_a_task_is_reported_without_our_frames(tmp_path: Path) -> None:
    """It is the program's own, and Python reports it when the task is freed."""
    script = tmp_path / "train.py"
    script.write_text(PREAMBLE + LEAVES)
    result = gradinspect("trace", "--continue", script.name, cwd=tmp_path, is_new=True)

    assert result.returncode == 5
    assert "Task exception was never retrieved" in result.stderr
    assert "/gradinspect/" not in result.stderr


def test_the_parts_of_a_group_lose_our_frames() -> None:
    """At any depth: a part may be an error of its own that came through us."""
    own = without_our_frames.__code__
    scope: dict[str, object] = {}
    exec(compile("def fail():\n    1 / 0", own.co_filename, "exec"), scope)  # noqa: S102  # a frame of ours
    try:
        scope["fail"]()  # type: ignore[operator]
    except ZeroDivisionError as error:
        part = error
    without_our_frames(ExceptionGroup("outer", [ExceptionGroup("inner", [part])]))
    traceback = part.__traceback__

    assert traceback is not None
    assert traceback.tb_next is None
