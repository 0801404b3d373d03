"""A notebook as a SOURCE: its cells in order, magics left out, lines named by cell."""

import json
from pathlib import Path

import pytest
from runs import gradinspect

from gradinspect.errors import GradInspectError
from gradinspect.runner.notebooks import read_notebook

TRAINING = (
    "%matplotlib inline\nimport torch\nnet = torch.nn.Linear(2, 1)\n",
    "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nx = torch.ones(3, 2)\nx",
    "%%time\n\nfor _ in range(3):\n    net(x).sum().backward()\n    optimizer.step()\ndisplay('done')",
)


def notebook(path: Path, *cells: str, as_lists: bool = True) -> Path:
    """Write a notebook with these code cells, after a text."""
    sources = [cell.splitlines(keepends=True) if as_lists else cell for cell in cells]
    plain: dict[str, object] = {"metadata": {}, "outputs": [], "execution_count": None}
    written = [{"cell_type": "markdown", "metadata": {}, "source": ["# Training"]}]
    written += [{"cell_type": "code", "source": source, **plain} for source in sources]  # type: ignore[dict-item]
    path.write_text(json.dumps({"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


@pytest.mark.parametrize(
    ("cell", "left_out", "value"),
    [
        ("x = 1", (), 1),
        ("!pip install torch\nx = 2", ("cell 1: !pip install torch",), 2),
        ("if True:\n    %cd folder\n    x = 3", ("cell 1: %cd folder",), 3),
        ("%%time\nx = 4", ("cell 1: %%time",), 4),
        ("%%bash\nrm -rf x", ("cell 1: %%bash",), None),
        ("x = (7\n%4)", (), 3),
        ("print?\nx = 5", ("cell 1: print?",), 5),
        ("files = !ls\nx = 6", ("cell 1: files = !ls",), 6),
        ("x = '''\n%cd'''", (), "\n%cd"),
        ("", (), None),
    ],
)
def test_magics_are_left_out(cell: str, left_out: tuple[str, ...], value: object, tmp_path: Path) -> None:
    """What is Python stays, on its lines; the rest is named."""
    read = read_notebook(notebook(tmp_path / "a.ipynb", cell, as_lists=cell != "x = 1"))
    namespace: dict[str, object] = {}
    for code in read.codes:
        exec(code, namespace)  # noqa: S102  # written above

    assert read.left_out == left_out
    assert namespace.get("x") == value


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [1]}', '{"cells": {}}', "\udcff", '{"worksheets": [3]}'])
def test_what_is_no_notebook(text: str, tmp_path: Path) -> None:
    """One sentence."""
    path = tmp_path / "a.ipynb"
    path.write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(GradInspectError, match="is not a notebook"):
        read_notebook(path)


def test_a_mistake_is_named_by_its_cell(tmp_path: Path) -> None:
    """`cell 3:4`, counted as the notebook shows its lines; a note names the magics."""
    notebook(tmp_path / "train.ipynb", *TRAINING)
    done = gradinspect("check", "train.ipynb", cwd=tmp_path)

    assert done.returncode == 1
    assert "backward  cell 3:4  net(x).sum().backward()" in done.stdout
    assert done.stderr == ("note: 2 magics of 'train.ipynb' left out: cell 1: %matplotlib inline; cell 3: %%time\n")


def test_an_error_is_shown_with_the_lines_of_its_cell(tmp_path: Path) -> None:
    """As python shows that of a script, also if a cell is not Python."""
    notebook(tmp_path / "fails.ipynb", "x = 0", "\ny = 1 / x")
    notebook(tmp_path / "typo.ipynb", "def f(:\n  pass")
    failed, typo = (gradinspect("trace", name, cwd=tmp_path) for name in ("fails.ipynb", "typo.ipynb"))

    assert failed.returncode == typo.returncode == 3
    assert 'File "<cell 2>", line 2, in <module>\n    y = 1 / x\n' in failed.stderr
    assert 'File "<cell 1>", line 1\n    def f(:\n' in typo.stderr
    assert "gradinspect/" not in failed.stderr + typo.stderr


@pytest.mark.parametrize("verb", ["check", "memory --iterations 3"])
def test_what_a_variable_of_a_notebook_holds_is_found(verb: str, tmp_path: Path) -> None:
    """With the cell and the line that stored it, although no module has a file."""
    cells = (
        "import torch\nw = torch.ones(3, requires_grad=True)\nkept = []",
        "for _ in range(5):\n    kept.append((w * w).sum())\n    (w * 2).sum().backward()",
    )
    name, *options = verb.split()
    done = gradinspect(name, notebook(tmp_path / "n.ipynb", *cells), *options)

    assert "kept[*]" in done.stdout
    assert "cell 2:2  kept.append((w * w).sum())" in done.stdout
