"""Several sources on one command line, each in a state of its own: a program is run in a child process.

The child inherits our streams, so that the program prints and reads what it would, and its errors are those of every
verb. It leaves a capture file, which is read as any other. NOTE [Children are what is running] in `own_process`.
"""

import pickle
import secrets
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import typer

from gradinspect.cli.options.command_line import split_arguments
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.running.own_process import run_own_process
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.graph import Graph
from gradinspect.request import Request
from gradinspect.source import CaptureFile
from gradinspect.storage import comparable_digest, read_graph

_NOT_FLUSHED = 120  # Python ends so if the program left a stream that cannot be flushed
Wanted = Literal["graph", "values", "calls"]


class Source(NamedTuple):
    """One of the sources."""

    label: str  # as the user wrote it
    request: Request


def parse_one(label: str, words: Sequence[str], arguments: Sequence[str]) -> Source:
    """Read what is to be run from the words of a command line.

    Args:
        label: The words as the user wrote them.
        words: A SOURCE, and options on how to run it.
        arguments: Of the script.

    Raises:
        GradInspectError: A file does not exist, or an option is unknown or would have no effect.
    """
    parser = typer.Typer(add_completion=False)
    parser.command()(takes_source()(_itself))
    command = typer.main.get_command(parser)
    try:
        request = command(list(words), obj=tuple(arguments), standalone_mode=False, prog_name="gradinspect")
    except GradInspectError:
        raise
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        option = getattr(error, "option_name", None)
        sentence = str(error.format_message()).rstrip(".")
        raise GradInspectError(
            f"'{label}' has no option '{option}'." if option else f"'{label}' cannot be read: {sentence}.",
            "Options of the script follow --: 'train.py -- --amp'.",
        ) from None
    if not isinstance(request, Request):
        raise GradInspectError(f"'{label}' names no SOURCE.", "Write it as 'train.py -- --amp'.")
    return Source(label, request)


def _itself(request: Request) -> Any:  # noqa: ANN401  # a command of typer's that returns what it has read
    return request


def parse_line(line: str) -> Source:
    """Read one source with its options and arguments: `train.py --backward 2 -- --amp`.

    Raises:
        GradInspectError: As in `parse_one`, or the quotes in it do not match.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        raise GradInspectError(f"The quotes in '{line}' do not match.", "Write it as 'train.py -- --amp'.") from None
    return parse_one(line, *split_arguments(words))


def content_of(source: Source, *, are_ranks: bool = False) -> bytes:
    """Return what is the same for capture files that are equal for a comparison, and different for all else."""
    program = source.request.source
    found = comparable_digest(program.path, are_ranks=are_ranks) if isinstance(program, CaptureFile) else None
    return secrets.token_bytes() if found is None else found


def read_source(source: Source, wanted: Wanted = "graph") -> tuple[Graph, ...]:
    """Return the graphs of a source: from the capture file, or by running the program in a child process.

    Args:
        source: The source.
        wanted: What to record of a program: one graph, one with fingerprints of its values, or those of all different
            backward calls of a step. A capture file has one.

    Raises:
        GradInspectError: The file is not valid, or the program recorded nothing.
        ScriptFailedError: The program failed, and what is wrong has been printed.
    """
    program = source.request.source
    if isinstance(program, CaptureFile):
        return (read_graph(program.path),)
    with tempfile.TemporaryDirectory(prefix="gradinspect-") as folder:
        _run_child(source, Path(folder), wanted)
        captures = Path(folder).glob("*.json")
        return tuple(read_graph(path) for path in sorted(captures, key=lambda path: int(path.stem)))


def _run_child(source: Source, folder: Path, wanted: Wanted) -> None:
    given = folder / "request"
    given.write_bytes(pickle.dumps((source.request, str(folder), wanted)))
    try:
        code = run_own_process(given)
    except OSError as error:
        raise GradInspectError(
            f"'{source.label}' needs a process of its own, which cannot be started: {error.strerror}.",
            "Export each graph with `gradinspect export -o run.json`, and compare the files.",
        ) from None
    if code < 0:
        raise ScriptFailedError(f"'{source.label}' was ended by signal {-code}.")
    is_there = (folder / "0.json").is_file()
    if code and not (code == _NOT_FLUSHED and is_there):
        raise ScriptFailedError("", code)
    if not is_there:
        raise GradInspectError(
            f"'{source.label}' ended before its graph could be written.", "Does it call os._exit() or exec()?"
        )
