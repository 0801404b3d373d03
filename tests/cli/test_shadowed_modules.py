"""Files of the user that have the names of modules we use: each side gets its own."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typing_extensions
from runs import PATIENCE_S, gradinspect, unmeasured
from turns import one_in

pytestmark = pytest.mark.slow

OURS = (
    "cmd", "colorsys", "decimal", "fractions", "graphviz", "hmac", "html", "msgspec", "pydantic", "rich", "secrets",
    "shellingham", "shlex", "sysconfig", "typer", "webbrowser", "xml", "yaml", "zoneinfo",
)  # fmt: skip

PROGRAM = """
import sys
loaded = sorted(sys.modules)
import json
seen = {name: __import__(name).WHO for name in NAMES}
import torch
again = {name: __import__(name).WHO for name in NAMES}
x = torch.ones(3, requires_grad=True)
(x * x).sum().backward()
import atexit
atexit.register(lambda: print(json.dumps({name: __import__(name).WHO for name in NAMES})))
print(json.dumps([loaded, sys.path, seen, again, [sys.modules[name].WHO for name in NAMES]]))
"""


def shadows(folder: Path, names: tuple[str, ...] = OURS) -> Path:
    """Write a file of each name, and a program beside them that wants its own."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text(f"WHO = 'the {name} of the user'\n")
    script = folder / "train.py"
    script.write_text(PROGRAM.replace("NAMES", repr(names)))
    return script


def run(*command: str | Path, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a python of its own: what is loaded before the program is what matters here."""
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=cwd,
        env={**unmeasured(), "COLUMNS": "80", **variables},
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    one_in(
        2,
        [
            "trace",
            "check",
            "memory --by line --iterations 1",
            "export -o graph.svg -o graph.html -o graph.json",
            "step --report s.md",
        ],
        first=1,
    ),
)
def test_each_side_gets_its_own_modules(words: str, tmp_path: Path) -> None:
    """What the program sees of modules and paths is what python shows it, and the report comes."""
    script = shadows(tmp_path)
    verb, *options = words.split()
    plain = run(script.name, cwd=tmp_path)
    watched = run("-m", "gradinspect", verb, script.name, "--continue", *options, cwd=tmp_path)
    first, *_, last = plain.stdout.splitlines()
    printed = watched.stdout.splitlines()

    assert (watched.returncode, plain.returncode, plain.stderr) == (0, 0, "")
    assert json.loads(first) == json.loads(printed[0])
    assert last == printed[-1]
    assert len(printed) > 2 or verb == "export"
    assert "Traceback" not in watched.stderr


def test_files_in_the_way_on_the_search_path(tmp_path: Path) -> None:
    """PYTHONPATH comes before installed packages for the program, and after them for us."""
    shadows(tmp_path / "lib")
    script = tmp_path / "train.py"
    script.write_text((tmp_path / "lib" / "train.py").read_text())
    variables = {"PYTHONPATH": "lib"}
    plain = run(script.name, cwd=tmp_path, **variables)
    watched = run("-m", "gradinspect", "trace", script.name, "--continue", cwd=tmp_path, **variables)

    assert (watched.returncode, watched.stderr) == (0, "")
    assert json.loads(plain.stdout.splitlines()[0]) == json.loads(watched.stdout.splitlines()[0])
    assert "MulBackward0" in watched.stdout


def test_a_folder_that_the_program_adds(tmp_path: Path) -> None:
    """A path put first while the program runs counts for what is imported after that, as under python."""
    names = ("rich", "html", "secrets")
    shadows(tmp_path / "src", names)
    (tmp_path / "train.py").write_text(
        "import html, sys, torch\nsys.path.insert(0, 'src')\nimport rich, secrets\n"
        "assert hasattr(html, 'escape') and 'user' in rich.WHO and 'user' in secrets.WHO\n"
        "(torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
        "import html.entities\nassert not hasattr(rich, 'console')\n"
    )
    done = gradinspect("trace", "train.py", "--continue", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "MulBackward0" in done.stdout


def test_a_module_is_never_loaded_twice(tmp_path: Path) -> None:
    """What we have loaded already is what the program gets, under every way of importing; a reload reloads."""
    (tmp_path / "train.py").write_text(
        "import dataclasses, importlib, importlib.util, sys, threading, torch\nimport enum\n"
        "assert threading.main_thread() is threading.current_thread()\n"
        "assert torch.nn.Module.__module__ == 'torch.nn.modules.module' and torch.nn.modules.module in "
        "sys.modules.values()\n"
        "assert importlib.util.find_spec('rich').origin.endswith('__init__.py')\n"
        "import rich, json\nassert rich.__spec__.loader.get_source('rich')\n"
        "assert type(rich.__spec__.loader).__name__ == 'SourceFileLoader'\n"
        "before = json.dumps\nassert importlib.reload(json).dumps is not before\n"
        "decoder = json.decoder\ndel sys.modules['json.decoder']\nimport json.decoder\n"
        "assert json.decoder is not decoder\n"
        "@dataclasses.dataclass\nclass Output:\n    loss: torch.Tensor\n"
        "out = Output((torch.ones(2, requires_grad=True) * 2).sum())\n"
    )
    done = gradinspect("trace", "train.py", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "MulBackward0" in done.stdout


NEEDED = {
    "unused by torch's import": ("fractions", "WHO = 'mine'\n"),
    "replaced whole": ("colorsys", "from math import *\nWHO = 'mine'\n"),
    "needed, and of no use": ("uuid", "WHO = 'mine'\n"),
    "needed, and imports torch itself": ("cuda", "from torch import nn\nWHO = 'mine'\n"),
    "needed, and broken": ("timeit", "raise ValueError('mine')\n"),
}


@pytest.mark.parametrize(("name", "content"), NEEDED.values(), ids=NEEDED)
def test_a_file_in_the_way_of_torch_is_as_under_python(name: str, content: str, tmp_path: Path) -> None:
    """Where python cannot import torch beside such a file, the program's own error is shown."""
    (tmp_path / f"{name}.py").write_text(content)
    (tmp_path / "train.py").write_text(
        "print('begin')\nimport torch\n(torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
        f"import {name}\nprint({name}.WHO)\n"
    )
    plain = run("train.py", cwd=tmp_path)
    watched = run("-m", "gradinspect", "trace", "train.py", "--continue", cwd=tmp_path)

    assert watched.stdout.startswith(plain.stdout)
    if plain.returncode:
        assert watched.returncode == 3
        *traceback, sentence = watched.stderr.splitlines()
        assert plain.stderr.splitlines()[-1] == traceback[-1]
        assert "gradinspect/" not in watched.stderr
        assert sentence.startswith("gradinspect: PyTorch cannot be imported by 'train.py'")
    else:
        assert "MulBackward0" in watched.stdout


def test_a_torch_that_can_be_imported_only_once_fails_for_its_own_reason(tmp_path: Path) -> None:
    """From 2.15 on, torch refuses a second import after a failed one; the program's import is the second."""
    (tmp_path / "torch.py").write_text(
        "import sys\nif getattr(sys, '_torch_import_started', False): raise ImportError('only once')\n"
        "sys._torch_import_started = True\nraise ValueError('mine')\n"
    )
    (tmp_path / "train.py").write_text("print('begin')\nimport torch\n")
    done = run("-m", "gradinspect", "trace", "train.py", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (3, "begin\n")
    *_, error, sentence = done.stderr.splitlines()
    assert error == "ValueError: mine"
    assert sentence == "gradinspect: PyTorch cannot be imported by 'train.py': ValueError."


def test_the_child_of_diff_is_what_is_running(tmp_path: Path) -> None:
    """Not a file of that name in the current folder."""
    for name in ("gradinspect", "typer", "rich", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(77)\n")
    (tmp_path / "train.py").write_text(
        "import os, sys, torch\nassert sys.path[0] == os.getcwd()\n"
        "(torch.ones(3, requires_grad=True) * 2).sum().backward()\n"
    )
    done = gradinspect("diff", "train.py", "train.py", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "No difference."


def test_a_child_has_the_options_of_our_interpreter(tmp_path: Path) -> None:
    """A program may depend on -O, and where `-P` keeps the current folder out, it stays out; arguments may be long."""
    (tmp_path / "train.py").write_text(
        "import sys, torch\nif (sys.flags.optimize, sys.flags.safe_path, len(sys.argv[1])) != (1, True, 10**5): "
        "sys.exit(5)\n(torch.ones(3, requires_grad=True) * 2).sum().backward()\n"
    )
    words = ("diff", "train.py", "train.py", "--", "x" * 10**5)
    done = run("-O", "-P", "-m", "gradinspect", *words, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", ["plan --fit 1GiB", "fit", "diff train.py", "check", "overview"])
def test_a_file_of_our_own_name(words: str, tmp_path: Path) -> None:
    """Nothing of ours is imported in the middle of a program, where the program's own file would be found."""
    (tmp_path / "gradinspect.py").write_text("print('LOADED')\n")
    (tmp_path / "train.py").write_text(
        "import torch\nmodel = torch.nn.Linear(3, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(4):\n    model(torch.ones(1, 3)).sum().backward()\n    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
    )
    command = tmp_path / "bin" / "command"  # as the one that is installed: `python -m` would find the user's
    command.parent.mkdir()
    command.write_text("import sys\nfrom gradinspect.cli import main\nsys.exit(main())\n")
    verb, *options = words.split()
    done = run(command, verb, "train.py", *options, cwd=tmp_path)

    assert (done.returncode, "LOADED" in done.stdout + done.stderr) == (0, False)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("fit",), ("plan", "--fit", "1GiB")])
def test_a_program_with_its_own_copy_of_what_torch_imports(words: tuple[str, ...], tmp_path: Path) -> None:
    """Torch must not be given ours later: before Python 3.13, typing_extensions changes how classes are made."""
    (tmp_path / "lib").mkdir()
    shutil.copy(str(typing_extensions.__file__), tmp_path / "lib" / "typing_extensions.py")
    (tmp_path / "train.py").write_text(
        "import torch\nmodel = torch.nn.Linear(3, 2)\nmodel(torch.ones(4, 3)).sum().backward()\n"
    )
    done = gradinspect(*words, "train.py", cwd=tmp_path, PYTHONPATH="lib")

    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_package_on_the_search_path_is_no_file_of_the_program(tmp_path: Path) -> None:
    """As one in the environment, it is named with the program's line that called it, in each verb."""
    info = tmp_path / "lib" / "mixing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "RECORD").write_text("mixing/__init__.py,,\nmixing-1.0.dist-info/RECORD,,\n")
    (tmp_path / "lib" / "mixing").mkdir()
    (tmp_path / "lib" / "mixing" / "__init__.py").write_text("def mix(x):\n    return (x * x).exp()\n")
    (tmp_path / "train.py").write_text(
        "import torch\nfrom mixing import mix\nmix(torch.ones(2, requires_grad=True)).sum().backward()\n"
    )
    for verb in ("trace", "fit"):
        done = gradinspect(verb, "train.py", cwd=tmp_path, PYTHONPATH="lib")

        assert (done.returncode, done.stderr) == (0, "")
        assert "called at train.py:3" in done.stdout
