"""The magic in a real kernel, by nbclient."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed.")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed.")
pytest.importorskip("ipykernel", reason="ipykernel is not installed.")

CELLS = (
    "%load_ext gradinspect\nimport torch\nimport gradinspect as gi\nnet = torch.nn.Linear(2, 1)\nx = torch.ones(3, 2)",
    "%%gradinspect check\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor _ in range(3):\n"
    "    net(x).sum().backward()\n    optimizer.step()",
    "%%gradinspect trace\nnet(x).sum().backward()",
    "%%gradinspect memory\nnet(x).sum().backward()",
    "%%gradinspect dance\nx",
    "with gi.record(net) as recording:\n    net(x).sum().backward()\nrecording.graph",
    "%%gradinspect check\n1 / 0",
)


def run(cells: tuple[str, ...], folder: Path) -> list[list[dict[str, object]]]:
    """Run cells in a kernel, and return the outputs of each."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(made, timeout=300, allow_errors=True, resources={"metadata": {"path": folder}}).execute()
    return [cell.outputs for cell in made.cells]


def html(outputs: list[dict[str, object]]) -> str:
    """Return what a cell shows as HTML."""
    return next(str(one["data"]["text/html"]) for one in outputs if "text/html" in one.get("data", {}))  # type: ignore[index, operator]


def test_a_notebook_as_a_user_writes_it(tmp_path: Path) -> None:
    """Findings with the lines of the cell, a picture, a table; an unknown verb and an error are said without ours."""
    outputs = run(CELLS, tmp_path)
    traced, recorded = html(outputs[2]), html(outputs[5])

    assert "GI362" in html(outputs[1])
    assert "cell 2:4" in html(outputs[1])
    assert "cell 3:2" in traced
    assert "net Linear" in " ".join(traced.split())
    assert "cell 6:2" in recorded
    assert "held as" in html(outputs[3])
    assert "&#x27;%%gradinspect dance&#x27;" in str(outputs[4]) or "'%%gradinspect dance' is not known" in str(
        outputs[4]
    )
    assert "ZeroDivisionError" in str(outputs[6])
    assert "api/live/session.py" not in str(outputs[6])
    assert len(traced) < 20_000
