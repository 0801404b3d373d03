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
    print_error(ValueError("boom"))
    shown = capsys.readouterr().err

    assert [text for text in printed if text not in shown] == []
