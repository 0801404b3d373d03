"""`gradinspect find`: one condition, on a program or a capture."""

import json
from pathlib import Path

import pytest
from factories import product_plus_two, two_layers
from inline_snapshot import snapshot
from msgspec.structs import replace

from gradinspect.cli import main
from gradinspect.storage import encode_graph


@pytest.fixture
def _capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("run.json").write_bytes(encode_graph(two_layers(), compressed=False))
    Path("small.json").write_bytes(encode_graph(product_plus_two(), compressed=False))


@pytest.mark.usefixtures("_capture")
def test_the_nodes_that_meet_a_condition(capsys: pytest.CaptureFixture[str]) -> None:
    """One per line, with what they hold."""
    assert main(["find", "run.json", "class~Addmm*"]) == 0
    assert capsys.readouterr().out == snapshot("""\
#  class               output         bytes  module     line
1  AddmmBackward0  ×2  f32[4, 3..20]  480 B  model.0,2  src/model.py:21
2 nodes where class~Addmm*, 480 B held; each one: --full
""")


@pytest.mark.usefixtures("_capture")
def test_no_node_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """It is no error, and says what there is."""
    assert main(["find", "small.json", "status=modified"]) == 0
    assert capsys.readouterr().out == (
        '0 nodes where status=modified, 0 B held\nNo node has status=modified. Available: "live".\n'
    )


@pytest.mark.usefixtures("_capture")
def test_json_within_a_budget(capsys: pytest.CaptureFixture[str]) -> None:
    """For scripts."""
    assert main(["find", "run.json", "bytes>=0", "--format", "json", "--budget", "500"]) == 0
    printed = capsys.readouterr().out

    assert len(printed) <= 500
    assert json.loads(printed)["found"] > 0


@pytest.mark.usefixtures("_capture")
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["find", "run.json", "bytes>>1"], "The condition 'bytes>>1' cannot be read"),
        (["find", "run.json", "size>1"], 'This table has no field "size". Available: bytes, class'),
        (["find", "run.json", "bytes>1", "--budget", "900"], "'--budget 900' is for JSON. Add --format json."),
        (
            ["find", "run.json"],
            "Missing argument 'CONDITION': bytes, class, dtype, flops, hooks, line, module, name, shape, status.",
        ),
        (["plan", "train.py"], "Missing option '--fit': Available memory, such as 24GiB. Try: gradinspect plan --help"),
        (["trace", "run.json", "--where", "bytes>1GiB"], "No node matches 'where bytes>1GiB'."),
    ],
)
def test_what_cannot_be_asked(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence that quotes it."""
    assert main(words) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.usefixtures("_capture")
def test_a_tree_shows_what_meets_the_same_condition(capsys: pytest.CaptureFixture[str]) -> None:
    """`trace --where` cuts the rest away."""
    assert main(["trace", "run.json", "--where", "class~Addmm*"]) == 0
    assert "where class~Addmm*" in capsys.readouterr().out


def test_what_is_inside_a_compiled_node_that_stays_closed_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Below the nodes that were found, and below what is saved."""
    note = "What is inside 1 compiled node is not known: --eager shows the graph without torch.compile."
    path = tmp_path / "run.json"
    path.write_bytes(encode_graph(replace(product_plus_two(), warnings=("Another one.", note)), compressed=False))
    for words in (["find", str(path), "bytes>0"], ["saved", str(path)]):
        assert main(words) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert said.endswith(note)
        assert "Another one." not in said
