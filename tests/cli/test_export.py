"""The options of `gradinspect export`."""

from pathlib import Path

import pytest
from factories import product_plus_two

from gradinspect.cli import main
from gradinspect.storage import encode_graph


def test_both_spellings_of_color_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The British spelling gives the same picture, with and without an equals sign."""
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_bytes(encode_graph(product_plus_two(), compressed=False))
    spellings = (["--color-by", "bytes"], ["--colour-by", "bytes"], ["--colour-by=bytes"])
    pictures = []
    for number, option in enumerate(spellings):
        assert main(["export", "run.json", "-o", f"{number}.dot", *option]) == 0
        pictures.append(Path(f"{number}.dot").read_text())

    assert "bytes held for backward" in pictures[0]
    assert pictures == pictures[:1] * len(spellings)


def test_help_lists_the_us_spelling_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is accepted, not advertised."""
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["export", "--help"]) == 0
    printed = capsys.readouterr().out

    assert "--color-by" in printed
    assert "colour" not in printed


def test_themes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each theme is another picture, and another name is refused."""
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_bytes(encode_graph(product_plus_two(), compressed=False))
    pictures = []
    for number, option in enumerate((["--theme", "light"], ["--theme", "dark"], ["--theme", "paper"])):
        assert main(["export", "run.json", "-o", f"{number}.dot", *option]) == 0
        pictures.append(Path(f"{number}.dot").read_text())

    assert len(set(pictures)) == 3
    assert main(["export", "run.json", "-o", "x.svg", "--theme", "sepia"]) == 2
    assert "'sepia'" in capsys.readouterr().err
