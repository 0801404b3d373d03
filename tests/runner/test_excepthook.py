"""An excepthook of the program that fails is reported as Python does, and takes nothing else with it."""

import sys

import pytest

from gradinspect.runner.programs.program import print_error


@pytest.mark.parametrize(
    ("raised", "printed"),
    [
        (RuntimeError("in hook"), ("Error in sys.excepthook:", "in hook", "Original exception was:", "boom")),
        (KeyboardInterrupt(), ("KeyboardInterrupt", "boom")),
        (SystemExit("bye"), ("bye",)),
    ],
)
def test_an_excepthook_that_fails(
    raised: BaseException, printed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both errors are printed, or what sys.exit was given."""

    def hook(*_error: object) -> None:
        raise raised

    monkeypatch.setattr(sys, "excepthook", hook)
    left = print_error(ValueError("boom"))
    shown = capsys.readouterr().err

    assert left == (1 if isinstance(raised, SystemExit) else None)
    assert [text for text in printed if text not in shown] == []


def test_no_excepthook_is_said_as_python_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a program has deleted it, or put there what cannot be called."""
    monkeypatch.setattr(sys, "excepthook", None)
    print_error(ValueError("boom"))
    of_none = capsys.readouterr().err
    monkeypatch.delattr(sys, "excepthook")
    print_error(ValueError("boom"))

    assert of_none == (
        "Error in sys.excepthook:\nTypeError: 'NoneType' object is not callable\n\n"
        "Original exception was:\nValueError: boom\n"
    )
    assert capsys.readouterr().err == "sys.excepthook is missing\nValueError: boom\n"
