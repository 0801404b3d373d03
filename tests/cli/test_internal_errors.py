"""A bug of ours has an exit code of its own, in every verb: CI must not read it as a finding."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from factories import product_plus_two
from runs import gradinspect
from verb_words import WORDS

from gradinspect.cli import main
from gradinspect.cli.running.forked_runs import ForkedRuns
from gradinspect.cli.verbs import VERBS
from gradinspect.errors import INTERNAL_ERROR, InternalError
from gradinspect.request import Request
from gradinspect.source import Script
from gradinspect.storage import encode_graph

WHERE = {
    "fit": "gradinspect.cli.fit.report_step_memory",
    "plan": "gradinspect.cli.plan.find_plan",
    "diff": "gradinspect.cli.diff.read_source",
    "explain": "gradinspect.cli.explain._explained",
    "explore": "gradinspect.cli.explore._require_terminal",
}


class Unexpected(BaseException):
    """An error of a kind of its own."""

    def __str__(self) -> str:
        raise ValueError


def failing(error: BaseException) -> Callable[..., Any]:
    """Return a function that fails."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program and a capture."""
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_bytes(encode_graph(product_plus_two(), compressed=False))
    Path("train.py").write_text("")
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_a_bug_in_a_verb_is_4(
    verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence says that it is ours and where; the traceback and the versions are below it."""
    monkeypatch.setattr(WHERE.get(verb, f"gradinspect.cli.{verb}.report_on"), failing(ZeroDivisionError("a\x1b[31m/b")))

    assert main([verb, *WORDS[verb]]) == 4
    sentence, *rest = capsys.readouterr().err.splitlines()

    assert re.fullmatch(
        rf"gradinspect: gradinspect itself failed at cli/{verb}.py:\d+, and not the program: "
        r"ZeroDivisionError: a\\x1b\[31m/b\. Please report it .*",
        sentence,
    )
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-2:-1] == ["ZeroDivisionError: a\\x1b[31m/b"]
    assert rest[-1].startswith("gradinspect ")


@pytest.mark.parametrize(
    "error",
    [
        RecursionError(),
        Unexpected(),
        GeneratorExit(),
        FileNotFoundError(2, "No such file", "x"),
        ExceptionGroup("two", [OSError(), KeyError()]),
    ],
)
def test_a_bug_of_any_kind_is_4(
    error: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one whose text cannot be read."""
    monkeypatch.setattr("gradinspect.cli.trace.report_on", failing(error))

    assert main(["trace", "run.json"]) == 4
    assert type(error).__name__ in capsys.readouterr().err


@pytest.mark.parametrize("name", ["this_job", "exit_code_of", "split_arguments"])
def test_a_bug_before_any_verb_is_4(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that `main` does is outside."""
    monkeypatch.setattr(f"gradinspect.cli.program.{name}", failing(KeyError("x")))

    assert main(["trace", "run.json"]) == 4
    assert "KeyError" in capsys.readouterr().err


def test_a_bug_without_streams_is_4(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nowhere to say it, and the exit code still does."""
    monkeypatch.setattr("gradinspect.cli.trace.report_on", failing(KeyError("x")))
    monkeypatch.setattr("sys.stderr", None)
    monkeypatch.setattr("sys.stdout", None)

    assert main(["trace", "run.json"]) == 4


def test_what_the_system_refuses_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A full disk is no bug of ours."""
    monkeypatch.setattr("gradinspect.cli.trace.report_on", failing(OSError(28, "No space left on device", "/x/y")))

    assert main(["trace", "run.json"]) == 2
    assert capsys.readouterr().err == (
        "gradinspect: '/x/y' cannot be used: No space left on device. Check it, and the folder that it is in.\n"
    )


def test_a_bug_in_a_forked_run_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its traceback, which the child may not print: `plan` and `--search` hide what it prints."""
    sent: list[bytes] = []

    def run(child: Callable[[Callable[[bytes], None]], None], *, is_silent: bool) -> tuple[bytes, int]:
        assert is_silent
        child(sent.append)
        return sent[-1], 0

    monkeypatch.setattr("gradinspect.cli.running.forked_runs.import_session", failing(KeyError()))
    monkeypatch.setattr("gradinspect.cli.running.forked_runs.run_forked", run)
    monkeypatch.setattr(ForkedRuns, "__init__", lambda _: None)
    monkeypatch.setattr(ForkedRuns, "_deliver", failing(ZeroDivisionError("\udc80")))
    request = Request(source=Script(Path("train.py")), label="train.py")
    with pytest.raises(InternalError, match="ZeroDivisionError") as caught:
        ForkedRuns().run(request, None, Request, is_silent=True)  # type: ignore[call-arg, arg-type, type-var]

    assert "in fail" in caught.value.trace


@pytest.mark.slow
def test_a_bug_in_the_child_of_diff_is_4(folder: Path) -> None:
    """The child reports it, and we end with its code."""
    Path("train.py").write_text(
        "import torch\nfrom gradinspect.runner.run import Run\ndef fail(*_, **__): raise ZeroDivisionError\n"
        "Run.record_call = fail\ntorch.ones(1, requires_grad=True).backward()\n"
    )
    done = gradinspect("diff", "train.py", "run.json")

    assert done.returncode == INTERNAL_ERROR
    assert done.stderr.count("gradinspect itself failed at ") == 1


@pytest.mark.parametrize("words", [("trace", "run.json"), ("trace", "run.json", "--format", "json"), ("--version",)])
def test_without_stdout_nothing_is_printed(
    words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `print` does where stdout was closed before the process began."""
    monkeypatch.setattr("sys.stdout", None)

    assert main(words) == 0
