"""Output that cannot be written, and names that no file can have, are one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest
from factories import product_plus_two

from gradinspect.cli import main
from gradinspect.storage import encode_graph

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device here")
@pytest.mark.parametrize("words", ["trace run.json", "saved run.json --format csv", "--help"])
def test_a_full_device_is_said(words: str, tmp_path: Path) -> None:
    """On stderr, with the status of what the user can fix, and without Python's own complaint at exit."""
    (tmp_path / "run.json").write_bytes(encode_graph(product_plus_two(), compressed=False))
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gradinspect", *words.split()], stdout=full, stderr=subprocess.PIPE, text=True,
            check=False, cwd=tmp_path,
        )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr == (
        "gradinspect: The output could not be written: No space left on device. Check the target of stdout.\n"
    )


@pytest.mark.parametrize("words", [["trace", "x" * 300], ["trace", "x" * 300 + ".py"], ["trace", "x" * 300 + ".json"]])
def test_a_name_that_is_too_long(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused as any file that is not there."""
    assert main(words) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("verb", ["trace", "export"])
def test_a_file_whose_name_is_too_long(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused before anything is run; the longest name that there can be is written."""
    (tmp_path / "run.json").write_bytes(encode_graph(product_plus_two(), compressed=False))
    longest = tmp_path / ("b" * 250 + ".dot")

    assert main([verb, str(tmp_path / "run.json"), "-o", str(longest.with_name("b" * 252 + ".dot"))]) == 2
    assert capsys.readouterr().err.endswith("' cannot be written: File name too long. Choose another name.\n")
    assert main([verb, str(tmp_path / "run.json"), "-o", str(longest)]) == 0
    assert longest.exists()
