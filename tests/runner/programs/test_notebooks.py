"""A notebook as a SOURCE: its cells in order, magics left out, lines named by cell."""

import contextlib
import json
from pathlib import Path

import pytest
from runs import gradinspect

from gradinspect.errors import GradInspectError
from gradinspect.runner.programs.cells import run_cells
from gradinspect.runner.programs.notebooks import read_notebook

TRAINING = (
    "%matplotlib inline\nimport torch\nnet = torch.nn.Linear(2, 1)\n",
    "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nx = torch.ones(3, 2)\nx",
    "%%time\n\nfor _ in range(3):\n    net(x).sum().backward()\n    optimizer.step()\ndisplay('done')",
)


MAY_RAISE = "#raises-exception\n"  # a cell that begins so has the tag


def notebook(path: Path, *cells: str, as_lists: bool = True) -> Path:
    """Write a notebook with these code cells, after a text."""
    sources = [(cell.splitlines(keepends=True) if as_lists else cell, cell.startswith(MAY_RAISE)) for cell in cells]
    plain: dict[str, object] = {"outputs": [], "execution_count": None}
    written: list[dict[str, object]] = [{"cell_type": "markdown", "metadata": {}, "source": ["# Training"]}]
    written += [
        {"cell_type": "code", "source": source, "metadata": {"tags": ["raises-exception"]} if tagged else {}, **plain}
        for source, tagged in sources
    ]
    path.write_text(json.dumps({"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
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
        ("x = 'a\u2028b\x0cc'", (), "a\u2028b\x0cc"),
        ("y = '\x0c\u2028'\n!ls\nx = 7", ("cell 1: !ls",), 7),
        ("", (), None),
    ],
)
def test_magics_are_left_out(cell: str, left_out: tuple[str, ...], value: object, tmp_path: Path) -> None:
    """What is Python stays, on its lines; the rest is named."""
    read = read_notebook(notebook(tmp_path / "a.ipynb", cell, as_lists=cell != "x = 1"))
    namespace: dict[str, object] = {}
    run_cells(read.cells, namespace, lambda _error: None)

    assert read.left_out == left_out
    assert namespace.get("x") == value


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [1]}', '{"cells": {}}', "\udcff", '{"worksheets": [3]}'])
def test_what_is_no_notebook(text: str, tmp_path: Path) -> None:
    """One sentence."""
    path = tmp_path / "a.ipynb"
    path.write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(GradInspectError, match="is not a notebook"):
        read_notebook(path)


@pytest.mark.parametrize("text", ["{", '{"cells": [', '{"cells": [{"cell_type": "code" "source": ""}]}'])
def test_a_notebook_that_was_cut_off_is_refused(text: str, tmp_path: Path) -> None:
    """Where a command reads it, for whose program most modules are not loaded yet."""
    notebook = tmp_path / "cut.ipynb"
    notebook.write_text(text)

    done = gradinspect("trace", notebook)

    assert done.returncode == 2
    assert done.stderr == f"gradinspect: '{notebook}' is not a notebook. Save it again in Jupyter, or give a script.\n"


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


AWAITS = (
    "import asyncio, torch\nw = torch.ones(2, requires_grad=True)\nseen = []",
    "async def train(number):\n    await asyncio.sleep(0)\n    (w * number).sum().backward()\n    seen.append(number)",
    "await train(2)\ntask = asyncio.create_task(train(3))",
    "print('meanwhile', seen, asyncio.get_running_loop().is_running())",
    "async with asyncio.timeout(9):\n    await task\nprint('then', seen, [number async for number in aiter_of(seen)])",
)
ITERATES = "async def aiter_of(values):\n    for value in values:\n        yield value"
FAILS = (
    "print('one')",
    f"{MAY_RAISE}import torch\nw = torch.ones(2, requires_grad=True)\nw @ torch.ones(3)",
    f"{MAY_RAISE}def f(:",
    f"{MAY_RAISE}raise SystemExit(3)",
    f"{MAY_RAISE}await later(0 / 1, 1 / 0)",
    "print('two', w.shape)\n(w * 2).sum().backward()",
    "\n\n",
    "w + missing",
    "print('three')",
)


@pytest.mark.parametrize("verb", ["trace", "check", "grads"])
def test_cells_may_await(verb: str, tmp_path: Path) -> None:
    """All cells run within one loop; a task goes on between them, and its lines are those of its cell."""
    path = notebook(tmp_path / "a.ipynb", ITERATES, *AWAITS)
    done = gradinspect(verb, path.name, *(() if verb == "check" else ("--continue",)), cwd=tmp_path)

    assert "meanwhile [2, 3] True" in done.stdout, done.stderr
    assert "then [2, 3] [2, 3]" in done.stdout
    assert verb == "check" or "cell 3:3" in done.stdout
    assert done.returncode == 0


def test_a_notebook_that_awaits_nothing_may_start_a_loop(tmp_path: Path) -> None:
    """It is stopped inside of it, as a script is."""
    cells = ("import asyncio, torch", AWAITS[0], AWAITS[1], "asyncio.run(train(2))", "print('too late')")
    done = gradinspect("trace", notebook(tmp_path / "a.ipynb", *cells).name, cwd=tmp_path)

    assert "cell 3:3" in done.stdout
    assert "too late" not in done.stdout
    assert (done.stderr, done.returncode) == ("", 0)


def test_the_run_is_stopped_in_a_cell_that_awaits(tmp_path: Path) -> None:
    """At the first backward call: no later cell runs, what waits is ended, and nothing is printed."""
    last = "try:\n    await asyncio.sleep(60)\nfinally:\n    print('ended')"
    cells = (
        *AWAITS[:2],
        f"other = asyncio.create_task(asyncio.sleep(60))\nawait train(2)\n{last}",
        "print('too late')",
    )
    done = gradinspect("trace", notebook(tmp_path / "a.ipynb", *cells).name, cwd=tmp_path)

    assert "cell 2:3  (w * number).sum().backward()" in done.stdout
    assert "too late" not in done.stdout + done.stderr
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_cell_that_may_raise_does_not_end_the_run(tmp_path: Path) -> None:
    """Its error is shown, of whatever kind it is; a cell without the tag that raises ends the run."""
    path = notebook(tmp_path / "a.ipynb", *FAILS)
    done = gradinspect("trace", path.name, "--continue", cwd=tmp_path)

    assert "cell 6:2  (w * 2).sum().backward()" in done.stdout, done.stderr
    assert 'File "<cell 2>", line 4, in <module>\n    w @ torch.ones(3)\n' in done.stderr
    assert 'File "<cell 3>", line 2\n    def f(:\n' in done.stderr
    assert 'File "<cell 5>", line 2, in <module>\n    await later(0 / 1, 1 / 0)\n' in done.stderr
    assert 'File "<cell 7>", line 1, in <module>\n    w + missing\n' in done.stderr
    assert "three" not in done.stdout
    assert "gradinspect/" not in done.stderr
    assert "asyncio" not in done.stderr


def test_carets_are_below_what_failed(tmp_path: Path) -> None:
    """Also on the last line of a cell, which has no end."""
    cells = ("import torch\nw = torch.ones(2, requires_grad=True)", f"{MAY_RAISE}w + (1 / 0)", "w.sum().backward()")
    done = gradinspect("trace", notebook(tmp_path / "a.ipynb", *cells).name, cwd=tmp_path)

    assert "    w + (1 / 0)\n         ~~^~~\n" in done.stderr


def test_a_stop_in_a_cell_that_may_raise_ends_the_run(tmp_path: Path) -> None:
    """It is ours, not an error of the cell; Ctrl-C ends a run, too."""
    stops = f"{MAY_RAISE}{AWAITS[0]}\nw.sum().backward()"
    done = gradinspect("trace", notebook(tmp_path / "a.ipynb", stops, "print('too late')").name, cwd=tmp_path)
    keys = f"{MAY_RAISE}import signal\nsignal.raise_signal(signal.SIGINT)"
    interrupted = gradinspect("trace", notebook(tmp_path / "b.ipynb", keys, "print('too late')").name, cwd=tmp_path)

    assert "cell 1:5  w.sum().backward()" in done.stdout
    assert "too late" not in done.stdout + interrupted.stdout
    assert (done.returncode, done.stderr) == (0, "")
    assert interrupted.returncode != 0


def test_magics_through_get_ipython_are_left_out(tmp_path: Path) -> None:
    """As those in the text of a cell; each is named when it is asked for, and the names of the notebook are there."""
    asks = """shell = get_ipython()
shell.run_line_magic('matplotlib', 'inline')
shell.run_cell_magic('bash', '', 'rm x')
shell.magic('cd ..')
shell.system('ls')
print('names', 'shell' in shell.user_ns)"""
    done = gradinspect("trace", notebook(tmp_path / "a.ipynb", asks, TRAINING[0], *TRAINING[1:]).name, cwd=tmp_path)

    assert "names True" in done.stdout
    for magic in ("%matplotlib inline", "%%bash", "%cd ..", "!ls"):
        assert f"note: left out: {magic}\n" in done.stderr


PRINTS = ("import torch\nw = torch.ones(2, requires_grad=True)", "(w * 2).sum().backward()\nprint(w.grad)", "%time\n5")

KEEPS = (
    "from __future__ import annotations\nimport torch\nw = torch.ones(2, requires_grad=True)",
    "    def typed(x: Missing) -> 'one':\n        return x\n    typed(3)",
    "\n  print(_, __, _2, Out)\n  # the end\n  4 ; # quiet",
    "print(_, typed.__annotations__)\nNone",
    f"{MAY_RAISE}raise KeyboardInterrupt",
    "(w * 2).sum().backward()\n'five'",
    "print(_, __, sorted(Out))\n_ = 'mine'",
    "7",
    "print(_, __, _8, Out[8])",
    "print(In, _i, _ii, _iii, sep='; ')\n\n",
    "print(repr(_i2), repr(_i), In is _ih, len(In), _ih[1] == In[1])",
)
LOOPS = (
    *KEEPS,
    "import asyncio\nasync def give(): return 9",
    "await asyncio.sleep(0, 1)\nawait give()",
    "print(_, _13)",
    "print(In[-2:], _ii)",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cells",
    [(ITERATES, *AWAITS), FAILS, PRINTS, KEEPS, LOOPS],
    ids=["awaits", "fails", "prints", "keeps", "loops"],
)
def test_it_runs_as_nbclient_runs_it(cells: tuple[str, ...], tmp_path: Path) -> None:
    """The same is printed, as many errors are shown, and the same cell ends the run, as in a kernel."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    path = notebook(tmp_path / "a.ipynb", *cells)
    theirs = nbformat.read(str(path), 4)
    with contextlib.suppress(nbclient.exceptions.CellExecutionError):
        nbclient.NotebookClient(theirs, kernel_name="python3", timeout=300).execute()
    outputs = [output for cell in theirs.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = [output.text for output in outputs if output.get("name") == "stdout" and "CPU times" not in output.text]
    failed = [output.ename for output in outputs if output.output_type == "error"]
    ours = gradinspect("find", path.name, "class=Mul*", "--continue", cwd=tmp_path)
    errors = [line for line in ours.stderr.splitlines() if line.partition(":")[0] in failed]

    assert printed
    assert "".join(printed) in ours.stdout
    assert len(failed) == len(errors), ours.stderr
