"""Read and write whole files: a file is written completely or not at all."""

import errno
import os
import stat
import sys
from pathlib import Path

from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.storage.decoding import decode_file
from gradinspect.storage.leftovers import remove_leftovers, temporary_file
from gradinspect.units import escape_control
from gradinspect.user_files import open_file


def read_graph(path: str | os.PathLike[str]) -> Graph:
    """Read a capture file.

    Args:
        path: A `.json` or `.json.gz` file.

    Raises:
        GradInspectError: It cannot be opened, or is not a valid capture file.
    """
    path = Path(path)
    try:
        with open_file(path) as file:
            return decode_file(file, str(path))
    except OSError as error:
        raise _failed("read", path, error) from None


def write_file(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file atomically: readers see the old content or the new, never a part.

    Standard output (`-` or `/dev/stdout`), devices and pipes are written directly. For a link, its target is written.

    Args:
        path: The target.
        content: The whole content.
        force: Replace an existing file.

    Raises:
        GradInspectError: The file exists, or the target cannot be written.
        BrokenPipeError: The reader of standard output has gone.
    """
    try:
        if str(path) in {"-", "/dev/stdout"}:
            _write_to_stdout(content)
        elif path.exists() and not path.is_file() and not path.is_dir():
            _write_to_pipe(path, content)
        else:
            _write_regular(path, Path(os.path.realpath(path)), content, force=force)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _failed("write", path, error) from None


def _write_to_stdout(content: bytes) -> None:
    if sys.stdout is None:  # it was closed before Python began
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _write_to_pipe(path: Path, content: bytes) -> None:
    """Write to a device, or to a named pipe that somebody reads: else we would wait for that."""
    descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a number
        file.write(content)


def _write_regular(path: Path, target: Path, content: bytes, *, force: bool) -> None:
    if target.is_file() and not force:
        raise _exists(path)
    if target.is_dir():
        raise IsADirectoryError
    remove_leftovers(target.parent)
    with temporary_file(target.parent) as (temporary, descriptor):
        with open(descriptor, "wb") as file:  # noqa: PTH123  # a file descriptor
            file.write(content)
        if force:
            _replace(temporary, target)
        elif not _link(temporary, target):
            raise _exists(path)


def _replace(temporary: Path, target: Path) -> None:
    if target.is_file():
        os.close(os.open(target, os.O_WRONLY))  # fails for a program that runs, and for what is not ours to write
        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    temporary.replace(target)


def _link(temporary: Path, target: Path) -> bool:
    """Give a file its name unless it was taken meanwhile, for example by another rank of the same job."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    except OSError:  # the file system has no hard links
        if target.exists():
            return False
        temporary.replace(target)
    return True


def _exists(path: Path) -> GradInspectError:
    return GradInspectError(
        f'"{escape_control(str(path))}" exists.', "Overwrite it explicitly, or choose another name."
    )


def _failed(verb: str, path: Path, error: OSError) -> GradInspectError:
    name = escape_control(str(path))
    if isinstance(error, IsADirectoryError):
        return GradInspectError(f'Could not {verb} "{name}": it is a directory.', "Give a file name.")
    if error.errno == errno.ENXIO:
        return GradInspectError(f'Could not {verb} "{name}": nobody reads this pipe.', "Start its reader first.")
    if isinstance(error, FileNotFoundError) and verb == "write":
        if path.parent.is_dir():  # as in /proc
            return GradInspectError(f'Could not write "{name}": its directory takes no files.', "Choose another one.")
        return GradInspectError(
            f'Could not write "{name}": the directory does not exist: "{escape_control(str(path.parent))}".'
        )
    reason = (
        "the file does not exist" if isinstance(error, FileNotFoundError) else error.strerror or type(error).__name__
    )
    return GradInspectError(f'Could not {verb} "{name}": {reason[0].lower()}{reason[1:]}.')
