"""Which frames are the user's."""

import site
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import CodeType
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from gradinspect.recording import recorder
from gradinspect.recording.frames import (
    MOST_FRAMES,
    RUNNERS,
    FrameTable,
    file_of,
    is_own_file,
    is_runner,
    is_user_file,
    line_name,
    line_record,
    lines_from,
    own_frame,
    short_file_name,
    source_line,
    user_frames,
)


def test_the_files_that_run_a_program_are_there() -> None:
    """Frames outside of them are ours: a file that was moved would let ours pass for the user's."""
    missing = [file for file in RUNNERS if not Path(file).is_file()]

    assert missing == []


def code_at(file: str, name: str = "f", line: int = 1) -> CodeType:
    """Make the code of a function in a file that need not be there."""
    namespace: dict[str, Any] = {}
    exec(compile("\n" * (line - 1) + f"def {name}(): pass", file, "exec"), namespace)  # noqa: S102
    code: CodeType = namespace[name].__code__
    return code


PACKAGES = sysconfig.get_path("purelib")
STDLIB = sysconfig.get_path("stdlib")


@pytest.mark.parametrize(
    ("file", "is_users", "is_own"),
    [
        ("/home/me/train.py", True, True),
        ("<stdin>", True, True),
        ("<cell 3>", True, True),
        ("<frozen importlib._bootstrap>", False, False),
        ("<__array_function__ internals>", False, False),
        ("<eval_with_key>.1", False, False),
        (f"{PACKAGES}/transformers/trainer.py", True, False),
        (f"{Path(torch.__file__).parent}/nn/functional.py", False, False),
        (f"{STDLIB}/contextlib.py", False, False),
        (recorder.__file__, False, False),
        (f"{Path(recorder.__file__).parents[1]}_extra/train.py", True, True),
        (f"{Path(torch.__file__).parent}_geometric/nn.py", True, False),
        (f"{site.getusersitepackages()}/timm/models.py", True, False),
        (
            f"{sys.base_prefix}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/timm/x.py",
            True,
            False,
        ),
        ("/home/me/site-packages/project/train.py", True, True),
        ("C:\\work\\train.py", True, True),
    ],
)
def test_whose_a_file_is(file: str, is_users: bool, is_own: bool) -> None:
    """The program's own, an installed package's, or torch's, Python's and ours."""
    assert (is_user_file(file), is_own_file(file)) == (is_users, is_own)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/home/me/project/src/train.py", "src/train.py"),
        ("/home/me/project/train.py", "train.py"),
        ("/somewhere/else/lib/train.py", "lib/train.py"),
        ("/train.py", "train.py"),
        ("/a/train.py", "a/train.py"),
        (f"{PACKAGES}/transformers/trainer.py", "transformers/trainer.py"),
        ("<cell 12>", "cell 12"),
        ("<stdin>", "<stdin>"),
        (f"{site.getusersitepackages()}/timm/models.py", "timm/models.py"),
        (r"C:\Users\me\venv\Lib\site-packages\torch\nn\modules\module.py", "torch/nn/modules/module.py"),
        (r"c:\users\me\venv\lib\Site-Packages\timm\x.py", "timm/x.py"),
        (r"C:\Users\me\project\train.py", "project/train.py"),
        (r"\\server\share\train.py", "train.py"),
    ],
)
def test_a_file_is_named_without_its_machine(file: str, name: str) -> None:
    """Relative to where packages are, or to the folder of the run; else by its last two parts."""
    assert short_file_name(file, Path("/home/me/project")) == name


def test_a_line_is_named_by_its_file_alone() -> None:
    """As a reader says it."""
    assert (line_name("/a/b/train.py", 22), line_name("<cell 3>", 2)) == ("train.py:22", "cell 3:2")
    assert line_name(r"C:\Users\me\train.py", 22) == "train.py:22"


def test_what_runs_a_program_is_no_part_of_it() -> None:
    """Neither our session nor a test suite nor a notebook."""
    assert all(map(is_runner, RUNNERS))
    assert is_runner(f"{PACKAGES}/_pytest/python.py")
    assert is_runner(f"{PACKAGES}/IPython/core/x.py")
    assert not is_runner(f"{PACKAGES}/IPythonic/x.py")
    assert not is_runner(__file__)


def test_a_stack_is_interned_once() -> None:
    """The same lines have one number, another line another; callers come first in the records."""
    table = FrameTable()

    def inner() -> int | None:
        return table.number_of(sys._getframe())

    def outer() -> list[int | None]:
        return [inner() for _ in range(2)]

    first, second = outer()
    other = inner()
    assert first is not None
    assert other is not None
    index, frames = table.records({first}, Path(__file__).parent)
    frame = frames[index[first]]
    caller = table.caller_of(first)

    assert first == second
    assert other != first
    assert (frame.file, frame.function.rpartition(".")[2]) == ("test_frames.py", "inner")
    assert frame.code == "return table.number_of(sys._getframe())"
    assert frame.caller == index[caller or 0]
    assert frames[-1] is frame
    assert [record.caller is None or record.caller < place for place, record in enumerate(frames)] == [True] * len(
        frames
    )
    assert table.is_within(first, first)
    assert caller is not None
    assert table.is_within(first, caller)
    assert not table.is_within(caller, first)
    assert not table.is_within(None, first)
    assert [code.co_name for code, _ in table.chain(first)][:2] == ["inner", "<listcomp>"]
    assert table.describe(first) == f"test_frames.py:{frame.line}  {frame.code}"
    assert (__file__, frame.line) in list(table.lines())
    assert table.record(first, Path(__file__).parent) == replace(frame, caller=None)


def test_a_stack_without_a_line_of_the_user_has_no_number() -> None:
    """Nor has no frame."""
    assert FrameTable().number_of(None) is None


def test_a_line_that_no_call_came_through_can_be_recorded() -> None:
    """A decorator, and a line that was found in a file."""
    table = FrameTable()
    code = code_at(__file__, "decorated", 3)
    number = table.number_at(code, 2)
    record = line_record(code_at(f"{PACKAGES}/lib/x.py"), 1, Path("/"), 4)
    decorator = table.record(number, Path(__file__).parent)

    assert table.caller_of(number) is None
    assert decorator is not None
    assert decorator.line == 2
    assert table.record(None, Path(__file__).parent) is None
    assert table.number_at(code, 2) == number
    assert (record.file, record.line, record.caller, record.is_library) == ("lib/x.py", 1, 4, True)
    assert source_line(__file__, 1, Path(__file__).parent).code == '"""Which frames are the user\'s."""'


def test_the_lines_from_a_frame_and_its_file() -> None:
    """As many as are asked for; a program without a frame has no file."""
    lines = lines_from(sys._getframe(), 2)
    file = file_of(sys._getframe(), Path(__file__).parent)

    assert lines == ["lines = lines_from(sys._getframe(), 2)", "file = file_of(sys._getframe(), Path(__file__).parent)"]
    assert (file, file_of(None, Path())) == ("test_frames.py", "<unknown>")


def test_frames_of_python_itself_are_not_the_users() -> None:
    """A context manager is entered by a function of the standard library."""

    @contextmanager
    def entered() -> Iterator[list[str]]:
        yield [frame.f_code.co_name for frame in user_frames(sys._getframe())]

    with entered() as found:
        assert found[:2] == ["entered", sys._getframe().f_code.co_name]


def test_the_programs_own_line_is_named_rather_than_a_packages(tmp_path: Path) -> None:
    """The innermost one on the way outward; where there is none, the innermost of all."""
    installed = Path(sysconfig.get_path("purelib")) / "some_package" / "loss.py"
    table, seen = FrameTable(), []

    def note() -> None:
        frame = sys._getframe(1)
        number = table.number_of(frame)
        own = None if number is None else next(table.chain(table.own_number(number)))
        seen.append((own_frame(frame), own))

    package: dict[str, Any] = {"note": note}
    exec(compile("def loss():\n    note()\n", installed, "exec"), package)  # noqa: S102  # as if it were installed
    exec(compile("\nloss()\n", tmp_path / "train.py", "exec"), {"loss": package["loss"]})  # noqa: S102
    frame, own = seen[0]

    assert frame is not None
    assert own is not None
    assert (frame.f_code.co_filename, own[1]) == (str(tmp_path / "train.py"), 2)
    assert own[0].co_filename == str(tmp_path / "train.py")


def test_without_a_line_of_the_program_the_innermost_of_a_package_counts() -> None:
    """As in a thread that a package has started."""
    seen: list[Any] = []

    def note() -> None:
        frame: Any = sys._getframe(1)
        seen.extend((own_frame(frame), own_frame(None)))

    package: dict[str, Any] = {"note": note}
    for place, source in enumerate(("def inner(): note()", "def outer(): inner()")):
        exec(compile(source, f"{PACKAGES}/package/part{place}.py", "exec"), package)  # noqa: S102  # as if installed
    thread = Thread(target=package["outer"])
    thread.start()
    thread.join()

    assert [frame and frame.f_code.co_name for frame in seen] == ["inner", None]


@pytest.mark.parametrize("depth", [10, MOST_FRAMES + 1, 2 * MOST_FRAMES])
def test_of_a_function_that_calls_itself_the_innermost_frames_are_kept(depth: int) -> None:
    """An operator in the deepest call of thousands costs no more than one in the three-hundredth."""
    table = FrameTable()
    found: list[int | None] = []

    def down(left: int) -> None:
        if left:
            down(left - 1)
        else:
            found.append(table.number_of(sys._getframe()))

    down(depth)
    lines = [line for code, line in table.chain(found[0] or 0) if code is down.__code__]
    first = down.__code__.co_firstlineno
    assert lines[:2] == [first + 4, first + 2]
    assert len(lines) == min(depth + 1, MOST_FRAMES)
    assert len(list(table.lines())) <= MOST_FRAMES
