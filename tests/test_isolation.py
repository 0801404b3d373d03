"""What the program replaces for everybody is not replaced for us."""

import subprocess
import sys
from pathlib import Path

import pytest
from runs import gradinspect, python, unmeasured

pytestmark = pytest.mark.slow

VERBS = ("trace", "saved", "memory", "memory --iterations 2", "check", "grads", "step", "grads --timeline t.json")
REPLACED = {
    "no open, no sorted": "import builtins; builtins.open = builtins.sorted = builtins.print = None",
    "an isinstance of its own": (
        "import builtins; real = isinstance; count = []\n"
        "builtins.isinstance = lambda *words: count.append(0) or real(*words)"
    ),
}


@pytest.mark.parametrize("change", REPLACED.values(), ids=REPLACED)
@pytest.mark.parametrize("verb", [*VERBS, "trace -o x.svg -o x.html -o x.json"])
def test_a_program_that_replaces_what_everybody_calls(change: str, verb: str, tmp_path: Path) -> None:
    """It gets what it asked for; our work is done with what was there before."""
    script = tmp_path / "replace.py"
    script.write_text(
        f"import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\n{change}\n"
        "for _ in range(3):\n    (x * x).sum().backward()\n"
        "import atexit, builtins; atexit.register(builtins.__dict__.update, dict(vars(builtins)))\n"
        "builtins.len = builtins.isinstance = builtins.next = builtins.tuple = None\n"
    )
    plain = python(script, is_measured=False)
    done = gradinspect(*verb.split(), script, "--continue", cwd=tmp_path, is_measured=False)

    assert (plain.returncode, plain.stderr) == (0, "")
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if not line.startswith("Wrote ")] == []


@pytest.mark.parametrize("verb", ["trace -o x.svg -o x.html -o x.json", "check"])
def test_a_program_that_takes_all_finders_away(verb: str, tmp_path: Path) -> None:
    """It can import nothing any longer, and we can."""
    script = tmp_path / "nothing.py"
    script.write_text(
        "import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\n"
        "import sys; sys.meta_path.clear(); sys.path_hooks.clear()\n(x * x).sum().backward()\n"
        "try:\n    import html\nexcept ImportError:\n    print('no html')\n"
    )
    done = gradinspect(*verb.split(), script, "--continue", cwd=tmp_path, is_new=True, is_measured=False)

    assert done.returncode == 0
    assert done.stdout.startswith("no html\n")
    assert [line for line in done.stderr.splitlines() if not line.startswith("Wrote ")] == []


def test_a_finder_of_the_program_is_asked_once_for_each_import(tmp_path: Path) -> None:
    """Also for a module that we have imported, where the finders are asked whether the program would get the same."""
    script = tmp_path / "finder.py"
    script.write_text(
        "import sys, torch\nasked = []\nclass Finder:\n    def find_spec(self, name, path=None, target=None):\n"
        "        asked.append(name)\nsys.meta_path.insert(0, Finder())\nimport colorsys, rich, html, wave\n"
        "print(asked.count('rich'), asked.count('html'), asked.count('colorsys'), asked.count('wave'))\n"
        "torch.ones(3, requires_grad=True).sum().backward()\n"
    )

    done = gradinspect("trace", script, is_new=True, is_measured=False)

    assert done.stdout.startswith("1 1 1 1\n")


def test_modules_are_loaded_in_the_order_of_a_plain_run(tmp_path: Path) -> None:
    """Pickle names an object by the first module that has it; torch finds its caches on disk by a hash of that."""
    script = tmp_path / "order.py"
    script.write_text(
        "import pickle, sys, torch\nprint([name for name in sys.modules if name.partition('.')[0] == 'torch'])\n"
        "print(pickle.dumps(torch.contiguous_format))\ntorch.ones(3, requires_grad=True).sum().backward()\n"
    )
    plain = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, env=unmeasured()
    ).stdout
    found = gradinspect("trace", script, is_new=True, is_measured=False).stdout

    assert found.splitlines()[:2] == plain.splitlines()


def test_settings_of_torch_can_be_imported_where_a_program_runs_several_times(tmp_path: Path) -> None:
    """They take no attributes of a module, and torch was imported before the program."""
    script = tmp_path / "settings.py"
    script.write_text(
        "import torch\nimport torch._functorch.config\nmodel = torch.nn.Linear(2, 1)\n"
        "model(torch.ones(1, 2)).sum().backward()\n"
    )
    done = gradinspect("plan", script, "--fit", "1GiB")

    assert done.returncode == 0, done.stderr


def test_other_threads_import_what_they_import_without_us(tmp_path: Path) -> None:
    """Their way along the finders is not shortened, and each module is the one that the program has."""
    program = tmp_path / "program"
    program.mkdir()
    (program / "html.py").write_text("is_mine = True\n")
    script = tmp_path / "threads.py"
    script.write_text(
        "import cmd, colorsys, csv, html, importlib, sys, threading, xml.dom.minidom\n"
        "from gradinspect.isolation import Imports\n"
        "imports, ours, seen, aside = Imports(), html, {}, ['cmd', 'colorsys', 'csv']\n"
        f"imports.start_program({str(program)!r})\n"
        "def other():\n"
        "    import html\n"
        "    seen['theirs'], seen['import'], seen['loaded'] = html, __import__, 'xml' in sys.modules\n"
        "    importlib.import_module(aside.pop())\n"
        "def run():\n"
        "    thread = threading.Thread(target=other)\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "run()\n"
        "theirs = seen['theirs']\n"
        "for finders in (sys.meta_path, type('Finders', (list,), {})(sys.meta_path)):\n"
        "    sys.meta_path = finders\n"
        "    way = iter(finders)\n"
        "    met = [next(way)]\n"
        "    with imports.restored():\n"
        "        met += [next(way), next(way)]\n"
        "    met += way\n"
        "    with imports.restored():\n"
        "        import html, xml.dom.minidom as minidom\n"
        "        from xml.dom import minidom as same\n"
        "        run()\n"
        "    print(theirs.is_mine, seen['theirs'] is theirs, seen['loaded'], html is ours, same is minidom)\n"
        "    print(met == list(finders), sys.meta_path is finders, any('xml' in name for name in sys.modules))\n"
        "import html\n"
        "print(html is theirs, __import__.__class__.__name__)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, env=unmeasured())

    assert done.stderr == ""
    assert done.stdout == "True True False True True\nTrue True False\n" * 2 + "True builtin_function_or_method\n"


MADE_BY_CHILDREN = {
    "a pool": "with context.Pool(1) as pool:\n        made = pool.map(make, [3])[0]",
    "an executor": (
        "with concurrent.futures.ProcessPoolExecutor(1, context) as pool:\n        made = pool.submit(make, 3).result()"
    ),
    "a queue": (
        "queue = context.SimpleQueue()\n"
        "    child = context.Process(target=put, args=(queue,))\n"
        "    child.start()\n"
        "    made = queue.get()\n"
        "    child.join()"
    ),
}


@pytest.mark.parametrize("made", MADE_BY_CHILDREN.values(), ids=MADE_BY_CHILDREN)
def test_what_a_spawned_process_makes_of_a_class_of_the_script_is_that_class(made: str, tmp_path: Path) -> None:
    """It comes from `__mp_main__`: to the children that is the script, and so it must be here."""
    script = tmp_path / "spawns.py"
    script.write_text(
        "import concurrent.futures\nimport multiprocessing\nimport torch\n"
        "class Result:\n    def __init__(self, value):\n        self.value = value\n"
        "def make(value):\n    return Result(value)\n"
        "def put(queue):\n    queue.put(make(3))\n"
        'if __name__ == "__main__":\n'
        '    context = multiprocessing.get_context("spawn")\n'
        "    torch.ones(1, requires_grad=True).sum().backward()\n"
        f"    {made}\n"
        "    print(type(made) is Result, made.value)\n"
    )
    done = gradinspect("trace", script, "--continue", cwd=tmp_path, is_new=True, is_measured=False)

    assert done.returncode == 0, done.stderr
    assert "True 3" in done.stdout.splitlines()
