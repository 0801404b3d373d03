"""Source lines of the user's program: interns live Python frames as `Frame` records.

A frame is the user's if its file belongs neither to torch, nor to the standard library, nor to us. Other installed
packages count as the user's: the line of a model in `transformers` says more than the call of its trainer.
"""

import os
import re
import sysconfig
from collections.abc import Iterator
from os import getcwd
from os.path import abspath
from pathlib import Path, PureWindowsPath
from threading import Lock
from types import CodeType, FrameType, TracebackType

import torch

from gradinspect.graph import Frame
from gradinspect.recording.installed_packages import (
    ENVIRONMENT,
    folder_of_packages,
    normal_case,
    package_of,
    with_links,
)
from gradinspect.recording.notebook_cells import cell_name
from gradinspect.recording.source_text import line_of, remember_loader
from gradinspect.torch_api.dynamo import is_generated, uncompiled

HANDLER = "__torch_function__"  # what torch calls in place of a function of its own
_STACK_LINE = re.compile(r'^ *File "(.+)", line (\d+), in (.+)$', re.MULTILINE)  # as tracebacks are printed
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")  # how an absolute path of Windows starts


_FOREIGN = with_links(
    (Path(torch.__file__).parent, Path(torch.__file__).parent.parent / "torchgen", Path(__file__).parent.parent)
)
_STDLIB = with_links((*map(sysconfig.get_path, ("stdlib", "platstdlib")), Path(os.__file__).parent))


# Frames from here outward run the program, and are ours.
RUNNERS = tuple(
    str(Path(__file__).parent.parent / name)
    for name in ("runner/programs/program.py", "runner/programs/cells.py", "runner/session.py", "api/live/session.py")
)


# What runs the cells of a notebook and the tests of a suite: its frames do not belong to the program.
_HARNESSES = frozenset(("_pytest", "pluggy", "IPython", "ipykernel", "marimo"))


def is_runner(file: str) -> bool:
    """Return whether a file runs programs, so that frames from it outward are not the user's."""
    return file in RUNNERS or package_of(file) in _HARNESSES


_UNKNOWN = object()
MOST_FRAMES = 300  # of the user, the innermost: in a function that calls itself each call costs as much as it is deep
_LONGEST_CHAIN = 2 * MOST_FRAMES


class _KnownCode:
    """What is known of one code object. It is looked up by its id: its hash goes through all of its instructions."""

    __slots__ = ("_code", "is_runner", "is_users")

    def __init__(self, code: CodeType) -> None:
        self._code = code  # held, so that no other one gets its id
        self.is_runner = is_runner(code.co_filename)
        self.is_users = not self.is_runner and is_user_file(code.co_filename)


class FrameTable:
    """Interns the frames of one run by number; the records are made at the end."""

    def __init__(self) -> None:
        """Start empty."""
        self._numbers: dict[tuple[CodeType, int, int | None], int] = {}
        self._keys: list[tuple[CodeType, int, int | None]] = []
        self._codes: dict[int, _KnownCode] = {}
        self._lock = Lock()  # several threads number their frames
        self.has_handlers = False  # whether a frame was seen for which NOTE [Handlers that hand on] holds
        self._places: dict[tuple[int, ...], int | None] = {}  # all of a stack: ids of code, instructions -> number

    @uncompiled
    def number_of(self, frame: FrameType | None) -> int | None:
        """Intern the user's frames from this one outward, at most `MOST_FRAMES` of them.

        Returns:
            The number of the innermost one, or None if no frame is the user's.
        """
        codes, innermost = self._codes, frame
        chain: list[int] = []  # of each of the user's frames, innermost first: the id of its code, its instruction
        code: CodeType | None = None
        known: _KnownCode | None = None
        identity = 0
        while frame is not None and len(chain) < _LONGEST_CHAIN:
            if frame.f_code is not code:  # a function that calls itself is looked up once
                code = frame.f_code
                identity = id(code)
                known = codes.get(identity)
            if known is None:
                known = codes[identity] = _KnownCode(code)
                remember_loader(frame)  # the source may be in a zip file
                self.has_handlers = self.has_handlers or (known.is_users and code.co_name == HANDLER)
            if known.is_users:
                chain += (identity, frame.f_lasti)
            elif known.is_runner:
                break
            frame = frame.f_back
        place = tuple(chain)
        number = self._places.get(place, _UNKNOWN)
        if number is _UNKNOWN:
            number = self._places[place] = self._intern_users(innermost, len(chain) // 2)
        return number  # type: ignore[return-value]  # known by now

    def _intern_users(self, frame: FrameType | None, count: int) -> int | None:
        """Intern that many of the user's frames, all of whose code is known."""
        users: list[FrameType] = []
        while frame is not None and len(users) < count:
            if self._codes[id(frame.f_code)].is_users:
                users.append(frame)
            frame = frame.f_back
        number = None
        with self._lock:
            for user in reversed(users):
                number = self._intern(user.f_code, line_at(user), number)
        return number

    def _intern(self, code: CodeType, line: int, caller: int | None) -> int:
        key = (code, line, caller)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return number

    def describe(self, number: int) -> str:
        """Write a frame as `train.py:22  losses.append(loss)`."""
        code, line, _ = self._keys[number]
        text = line_of(code.co_filename, line)
        return f"{line_name(code.co_filename, line)}  {text}".rstrip()

    def chain(self, number: int) -> Iterator[tuple[CodeType, int]]:
        """Yield the code and line of a frame, and of those that called it."""
        for one in self._numbers_outward(number):
            code, line, _ = self._keys[one]
            yield code, line

    def lines(self) -> Iterator[tuple[str, int]]:
        """Yield the file and line of all frames."""
        return ((code.co_filename, line) for code, line, _ in self._keys)

    def caller_of(self, number: int) -> int | None:
        """Return the frame that called the function of a frame."""
        return self._keys[number][2]

    def parted(self, first: int, second: int) -> tuple[int, int]:
        """Return the innermost frames on different lines, from two frames outward; without any, the two themselves."""
        callers = zip(self._numbers_outward(first), self._numbers_outward(second), strict=False)
        return next((pair for pair in callers if self._keys[pair[0]][:2] != self._keys[pair[1]][:2]), (first, second))

    def _numbers_outward(self, number: int | None) -> Iterator[int]:
        while number is not None:
            yield number
            number = self._keys[number][2]

    def number_at(self, code: CodeType, line: int) -> int:
        """Intern another line of a file in which a frame is, such as that of a decorator."""
        return self._intern(code, line, None)

    def own_number(self, number: int) -> int:
        """Return the innermost line of the program itself on the way outward; without one, the line itself."""
        own: int | None = number
        while own is not None and not is_own_file(self._keys[own][0].co_filename):
            own = self._keys[own][2]
        return number if own is None else own

    def is_within(self, number: int | None, caller: int) -> bool:
        """Return whether a frame is `caller`, or was called from it."""
        while number is not None and number != caller:
            number = self._keys[number][2]
        return number is not None

    def record(self, number: int | None, base_folder: Path) -> Frame | None:
        """Make the record of one frame, without its callers."""
        return None if number is None else self._record(number, {}, base_folder)

    def records(self, used: set[int], base_folder: Path) -> tuple[dict[int, int], tuple[Frame, ...]]:
        """Make the records of the used frames and their callers.

        Args:
            used: Numbers that `number_of` gave.
            base_folder: Files below it are named relative to it.

        Returns:
            Number -> index into the records, and the records; a caller comes before the frames it called.
        """
        wanted = set(used)
        for number in sorted(used):
            caller = self._keys[number][2]
            while caller is not None and caller not in wanted:
                wanted.add(caller)
                caller = self._keys[caller][2]
        index = {number: position for position, number in enumerate(sorted(wanted))}
        return index, tuple(self._record(number, index, base_folder) for number in sorted(wanted))

    def _record(self, number: int, index: dict[int, int], base_folder: Path) -> Frame:
        code, line, caller = self._keys[number]
        return line_record(code, line, base_folder, None if caller is None else index.get(caller))


def line_record(code: CodeType, line: int, base_folder: Path, caller: int | None = None) -> Frame:
    """Make the record of a line.

    Args:
        code: The function it is in.
        line: Its number.
        base_folder: Files below it are named relative to it.
        caller: Index of the line that called the function.
    """
    return Frame(
        file=short_file_name(code.co_filename, base_folder),
        line=line,
        function=code.co_qualname,
        code=line_of(code.co_filename, line),
        caller=caller,
        is_library=folder_of_packages(code.co_filename) is not None,
    )


def source_line(file: str, line: int, base_folder: Path) -> Frame:
    """Make the record of a line that was found in a file, rather than in a running program."""
    name = short_file_name(file, base_folder)
    return Frame(file=name, line=line, code=line_of(file, line))


def lines_in_stack(stack: str) -> list[tuple[str, int, str]]:
    """List file, line and function of the user's frames in the text of a stack, outermost first."""
    found = ((file, int(line), function) for file, line, function in _STACK_LINE.findall(stack))
    return [one for one in found if is_user_file(one[0])]


def is_user_file(file: str) -> bool:
    """Return whether a file belongs to the user's program, rather than torch, the standard library or us."""
    if file.startswith("<"):
        return not file.startswith(("<frozen", "<__", "<eval_with_key>"))
    path = normal_case(file)
    if path.startswith(_FOREIGN):
        return False
    return path.startswith(ENVIRONMENT) or not path.startswith(_STDLIB)


def is_own_file(file: str) -> bool:
    """Return whether a file belongs to the program itself, rather than an installed package."""
    return is_user_file(file) and folder_of_packages(file) is None


def user_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the user's frames from this one outward, up to the start of the program."""
    while frame is not None and not is_runner(frame.f_code.co_filename):
        if is_user_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def caller_of_compiled(frame: FrameType | None) -> FrameType | None:
    """Return the user's frame that calls the compiled code which is running, from this one outward."""
    while frame is not None and (not is_user_file(frame.f_code.co_filename) or is_generated(frame.f_code)):
        frame = frame.f_back
    return frame


def own_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the program itself, else of an installed package; None if there is neither."""
    first = None
    for user in user_frames(frame):
        if is_own_file(user.f_code.co_filename):
            return user
        first = first or user
    return first


def line_at(frame: FrameType) -> int:
    """Return the line a frame is at; of code without line numbers, as tools write it, the first of its function."""
    line: int | None = frame.f_lineno
    return frame.f_code.co_firstlineno if line is None else line


def line_of_step(step: TracebackType) -> int:
    """Return the line that a step of a traceback names, by the rule of `line_at`."""
    line: int | None = step.tb_lineno
    return step.tb_frame.f_code.co_firstlineno if line is None else line


def file_of(frame: FrameType | None, base_folder: Path) -> str:
    """Name the file of a frame, as the record does."""
    return "<unknown>" if frame is None else short_file_name(frame.f_code.co_filename, base_folder)


def lines_from(frame: FrameType, count: int) -> list[str]:
    """Return the current line of a frame and those after it."""
    return [line_of(frame.f_code.co_filename, line_at(frame) + offset) for offset in range(count)]


def line_name(file: str, line: int) -> str:
    """Name a line by the last part of its file's name: `train.py:22`, `cell 3:2`."""
    return f"{cell_name(file) or _last_part(file)}:{line}"


def _last_part(file: str) -> str:
    return PureWindowsPath(file).name if _WINDOWS.match(file) else file.rpartition("/")[2]


def this_folder() -> Path:
    """Return the current folder; the root if it is not known, as when it was deleted."""
    try:
        return Path(getcwd())  # noqa: PTH109  # `Path.cwd` looks it up in `os`
    except Exception:  # or the program has replaced what finds it
        return Path(os.sep)


def short_file_name(file: str, base_folder: Path) -> str:
    """Name a file without its machine: relative to where packages are or to the base folder, else by two parts."""
    folder = folder_of_packages(file)
    if folder is not None:
        return Path(file[len(folder) :]).as_posix()
    cell = cell_name(file)
    if cell is not None or file.startswith("<"):
        return cell or file
    if os.name != "nt" and _WINDOWS.match(file):  # of code that was compiled there
        return _short_windows_name(PureWindowsPath(file))
    try:
        path = Path(abspath(file))  # noqa: PTH100  # resolve() would follow links to paths the user never used
    except Exception:  # the program has replaced what finds the current folder
        return "/".join(file.split("/")[-2:])
    try:
        return path.relative_to(base_folder).as_posix()
    except ValueError:
        return "/".join(path.parts[1:][-2:])  # without the root


def _short_windows_name(path: PureWindowsPath) -> str:
    """Name a file of Windows where its folders cannot be asked for: by what follows the packages' folder."""
    parts = path.parts[1:]  # without the drive
    folders = [place for place, part in enumerate(parts[:-1]) if part.lower() == "site-packages"]
    return "/".join(parts[folders[-1] + 1 :] if folders else parts[-2:])
