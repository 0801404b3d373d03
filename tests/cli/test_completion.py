"""What the TAB key offers: typer's completion, over verbs that are imported one at a time."""

import pytest

from gradinspect.cli.program import main
from gradinspect.cli.verbs import VERBS


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gradinspect ", [*VERBS]),
        ("gradinspect ex", ["export", "explore", "explain"]),
        ("gradinspect export train.py --th", ["--theme"]),
        ("gradinspect export train.py --theme ", ["light", "dark", "paper"]),
        ("gradinspect --ver", ["--version"]),
        ("gradinspect trace tr", []),  # a file, which the shell completes
    ],
)
def test_what_can_follow(
    line: str, offered: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verbs, options and their values, as bash asks for them."""
    monkeypatch.setenv("_GRADINSPECT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))

    with pytest.raises(SystemExit) as ended:
        main([])

    assert (ended.value.code, capsys.readouterr().out.split()) == (0, offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_us(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is that of the shell that the user has, and names the variable by which it asks."""
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    with pytest.raises(SystemExit) as ended:
        main(["--show-completion"])
    printed = capsys.readouterr().out

    assert ended.value.code == 0
    assert "_GRADINSPECT_COMPLETE=complete_" + shell in printed
