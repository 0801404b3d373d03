"""What the verbs print for machines, in every format, of one capture file."""

import csv
import io
import json
from pathlib import Path
from textwrap import wrap

import pytest
from factories import graph, leaf, op, saved
from inline_snapshot import snapshot

from gradinspect.cli import main
from gradinspect.graph import Frame, Gradients, GradientStats, Graph, ModuleCall, NodeGradients, Storage
from gradinspect.storage import encode_graph

HOSTILE = "a|b,`c`\n=1"
VERBS = (
    ["trace"], ["saved"], ["find", "bytes>=0"], ["grads"], ["diff", "run.json"],
    *(["memory", "--by", by] for by in ("module", "operator", "line", "storage", "flops")),
)  # fmt: skip
FORMATS = {"trace": ("json", "markdown"), "saved": ("json", "csv", "markdown"), "find": ("json",),
           "grads": ("json", "csv"), "diff": ("json", "markdown"), "memory": ("json", "csv")}  # fmt: skip
ASKED = [(verb, written) for verb in VERBS for written in FORMATS[verb[0]]]


def record() -> Graph:
    """Two nodes in a module, with gradients; a name in it would break out of each format."""
    figures = GradientStats(
        shape=(2,), dtype="float32", norm=1.0, max_abs=1.0, mean=float("nan"), num_zeros=0, num_nonfinite=1,
        num_elements=2,
    )  # fmt: skip
    gradients = (NodeGradients(node=0, order=0, incoming=(figures,), outgoing=(figures,)),)
    return graph(
        op(
            "MulBackward0",
            1,
            flops=10,
            backward_flops=20,
            module=0,
            frame=0,
            saved=(saved("_saved_self", 2, storage=0),),
        ),
        leaf(HOSTILE, 2),
        storages=(Storage(num_bytes=8),),
        modules=(ModuleCall(path=HOSTILE, class_name="Block"),),
        frames=(Frame(file=HOSTILE, line=3),),
        gradients=Gradients(nodes=gradients, weight_norms={1: 2.0}),
    )


@pytest.fixture
def _capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_bytes(encode_graph(record(), compressed=False))


@pytest.mark.usefixtures("_capture")
@pytest.mark.parametrize(("verb", "written"), ASKED, ids=lambda asked: "-".join(asked) if len(asked[0]) > 1 else asked)
def test_every_format_can_be_read(verb: list[str], written: str, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON is JSON; each row of CSV and of a Markdown table has as many cells as its head, whatever a name contains."""
    assert main([verb[0], "run.json", *verb[1:], "--format", written]) == 0
    text = capsys.readouterr().out
    match written:
        case "json":
            assert json.loads(text)
        case "csv":
            head, *rows = csv.reader(io.StringIO(text, newline=""))
            assert rows
            assert {len(row) for row in rows} == {len(head)}
        case _:
            tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
            assert tables or verb[0] == "diff"  # of equal graphs
            assert all(len({line.count("|") for line in lines}) == 1 for lines in tables)


@pytest.mark.usefixtures("_capture")
def test_the_columns_of_each_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts read them by name."""
    heads = {}
    for verb, written in ASKED:
        if written == "csv":
            main([verb[0], "run.json", *verb[1:], "--format", "csv"])
            heads[" ".join(verb)] = wrap(capsys.readouterr().out.splitlines()[0].replace(",", " "), 80)

    assert heads == snapshot(
        {
            "saved": [
                "node node_name attribute kind value num_bytes own_bytes weight_bytes shared_with",
                "status status_detail origin origin_name module source module_name shown_origin",
                "kept_by_eager",
            ],
            "grads": [
                "node order name module source direction position shape dtype norm max_abs mean",
                "num_zeros num_nonfinite num_elements unmeasured",
            ],
            "memory --by module": ["path class_name depth own_bytes total_bytes only_bytes"],
            "memory --by operator": ["label detail num_bytes shared_bytes only_bytes num_storages nodes"],
            "memory --by line": ["label detail num_bytes shared_bytes only_bytes num_storages nodes"],
            "memory --by storage": ["label detail num_bytes shared_bytes only_bytes num_storages nodes"],
            "memory --by flops": ["class line forward_flops backward_flops nodes"],
        }
    )
