"""Every option, file and variable that we read, given what nobody expects: one sentence, at once."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import typer
from factories import product_plus_two
from verb_words import WORDS

from gradinspect.cli import main
from gradinspect.cli.program import app
from gradinspect.cli.running.pipeline import report_on
from gradinspect.cli.verbs import VERBS
from gradinspect.source import CaptureFile
from gradinspect.storage import encode_graph

VALUES = (
    "", "9" * 5000, "-1", "nan", "1e400", "²", "1_000", "x" * 100_000, "a\0b", "\udc80\u202e\u200b", "pipe.json",
    "folder.json", "/dev/zero", "999999999999x9", "9" * 5000 + "x9", "bytes>" + "9" * 5000, "bytes>1e400%",
    "run.json#" + "9" * 5000, "#" + "9" * 5000, "((" * 3000, "[" * 50_000,
)  # fmt: skip
READS = {
    "a script": ("trace", "FILE.py"),
    "a capture": ("trace", "FILE.json"),
    "a packed capture": ("memory", "FILE.json.gz"),
    "one of two captures": ("diff", "FILE.json", "run.json"),
    "a step": ("fit", "FILE.json"),
    "a node": ("explain", "FILE.json#1"),
    "a Function": ("explain", "FILE.py:F"),
    "a baseline": ("check", "train.py", "--baseline", "FILE"),
    "commands": ("step", "train.py", "--script", "FILE"),
    "the settings": ("check", "train.py"),
}
MAX_S = 60.0  # far above what a busy machine needs, far below a loop over a number of nine digits


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a capture, a program that is not run, a pipe, and a folder."""
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_bytes(encode_graph(product_plus_two(), compressed=False))
    Path("train.py").write_text("")
    Path("folder.json").mkdir()
    os.mkfifo("pipe.json")
    for verb in VERBS:
        module = __import__(f"gradinspect.cli.{verb}", fromlist=[verb])
        if hasattr(module, "report_on"):
            monkeypatch.setattr(module, "report_on", _without_programs)
    monkeypatch.setattr("gradinspect.cli.plan.find_plan", _fail)
    monkeypatch.setattr("gradinspect.cli.fit.search_size", _fail)
    monkeypatch.setattr("gradinspect.cli.options.sources._run_child", _fail)


def _without_programs(request: Any, question: Any, report: Callable[[Any], None]) -> None:
    if isinstance(request.source, CaptureFile):
        report_on(request, question, report)


def _fail(*_: object, **__: object) -> None:
    raise KeyboardInterrupt  # it was accepted


def attacked(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command line; return what is wrong with how it ends."""
    start = monotonic()
    code = main(words)
    errors = capsys.readouterr().err
    is_slow = monotonic() - start > MAX_S
    is_one = code != 2 or (errors.count("gradinspect: ") == 1 and "Traceback" not in errors)
    return "" if code in {0, 1, 2, 130} and is_one and len(errors) < 2500 and not is_slow else f"{code} {errors[-300:]}"


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_no_value_of_an_option_ends_in_a_traceback(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each option of each verb is given each value."""
    command = typer.main.get_command(app).get_command(None, verb)  # type: ignore[attr-defined]
    options = [each for each in command.params if each.param_type_name == "option" and not each.is_flag]
    words = (verb, *WORDS[verb])
    wrong = {
        (option.opts[0], value[:40]): failure
        for option in options
        for value in VALUES
        if (failure := attacked((*words, option.opts[0], *[value] * option.nargs), capsys))
    }

    assert options
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_no_source_ends_in_a_traceback(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does any name of a program, a file, or what is explained."""
    others = WORDS[verb][1:]
    wrong = {value[:40]: failure for value in VALUES if (failure := attacked((verb, value, *others), capsys))}

    assert wrong == {}


CONTENTS = {
    "bytes": b"\xff\xfe\x00\x80" * 100,
    "digits": b"[tool.gradinspect]\nsteps = " + b"9" * 5000,
    "brackets": b"[" * 100_000,
    "a nest": b"x = " + b"(" * 100_000,
}
KINDS = ("a pipe", "a folder", "a device", "a loop of links", "a socket", "a log of the kernel")


def _made(kind: str, file: Path) -> None:
    match kind:
        case "a pipe":
            os.mkfifo(file)
        case "a folder":
            file.mkdir()
        case "a device":
            file.symlink_to("/dev/zero")
        case "a log of the kernel":
            file.symlink_to("/proc/kmsg")
        case "a socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(file))
        case "a loop of links":
            file.symlink_to(file.name)
        case _:
            file.write_bytes(CONTENTS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, *CONTENTS])
@pytest.mark.parametrize("read", READS)
def test_no_file_ends_in_a_traceback(read: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor is any waited for: a pipe to which nobody writes, a device or a log without an end."""
    words = tuple(word.replace("FILE", "strange") for word in READS[read])
    name = next((word for word in words if word.startswith("strange")), "pyproject.toml")
    _made(kind, Path(name.partition("#")[0].partition(":")[0]))

    assert attacked(words, capsys) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WORLD_SIZE", "100000000"), ("WORLD_SIZE", "9" * 5000), ("GRADINSPECT_RANKS_PATIENCE", "1e400"),
        ("GRADINSPECT_RANKS_PATIENCE", "-1"), ("GRADINSPECT_RANKS_PATIENCE", "9" * 5000),
    ],
)  # fmt: skip
def test_a_variable_that_cannot_be_meant_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named with its value, at once, and nothing runs."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv(name, value)

    assert attacked(("trace", "run.json"), capsys) == ""
    assert main(["trace", "run.json"]) == 2
    assert f"'{name}={value[:10]}" in capsys.readouterr().err.replace("gradinspect: ", "", 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COLUMNS", "-1"), ("COLUMNS", "0"), ("COLUMNS", "1"), ("COLUMNS", "1000000000"), ("COLUMNS", "9" * 5000),
        ("LINES", "-1"), ("TERM", "\udc80"), ("NO_COLOR", "x" * 9999), ("XDG_CACHE_HOME", "/dev/null"),
        ("XDG_CACHE_HOME", "\udc80"), ("PYTHONPATH", "\udc80:" * 999),
    ],
)  # fmt: skip
@pytest.mark.parametrize("words", [("trace", "run.json"), ("memory", "run.json"), ("explain", "GI101"), ("--help",)])
def test_no_variable_ends_in_a_traceback(
    name: str, value: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does a terminal of any width."""
    monkeypatch.setenv(name, value)

    assert attacked(words, capsys) == ""


def test_a_byte_order_mark_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Some editors write one at the beginning of any file."""
    mark = b"\xef\xbb\xbf"
    Path("marked.json").write_bytes(mark + Path("run.json").read_bytes())
    Path("known.json").write_bytes(mark + b'{"format":"gradinspect baseline","version":1,"programs":{}}')
    Path("pyproject.toml").write_bytes(mark + b"[tool.gradinspect]\nstep = 1\n")
    Path("steps.txt").write_bytes(mark + b"step\n")
    Path("marked.py").write_bytes(mark + b"class F:\n    def backward(): pass\n")

    assert main(["diff", "run.json", "marked.json"]) == 0
    assert main(["explain", "marked.py:F"]) == 0
    assert main(["step", "train.py", "--script", "steps.txt"]) == 0
    assert main(["check", "train.py", "--baseline", "known.json"]) == 2
    assert "'step' in [tool.gradinspect]" in capsys.readouterr().err
    Path("pyproject.toml").unlink()
    assert main(["check", "train.py", "--baseline", "known.json"]) == 0


@pytest.mark.parametrize("words", [("-", "-"), ("run.json", "-", "-"), ("--both", "-", "- -- --amp")])
def test_standard_input_is_one_source(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """It can be read only once."""
    assert main(["diff", *words]) == 2
    assert capsys.readouterr().err == (
        "gradinspect: '-' can be read only once, and two sources are '-'. Give a file for one of them.\n"
    )
