"""What may be imported, and when: the package reads captures where there is no torch, and answers --help at once."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import gradinspect

PACKAGE = Path(__file__).parent.parent / "gradinspect"
SAMPLE = str(PACKAGE.parent / "samples" / "mlp.py")
TORCH = {
    "torch_api",
    "recording",
    "fake",
    "runner",
    "observers",
    "evidence",
    "live",
    "trainers",
}  # the packages that import torch
TORCH_FILES = sorted(path for path in PACKAGE.rglob("*.py") if TORCH - {"torch_api"} & set(path.parts))
PARTS = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if not TORCH & set(path.parts) and path.stem != "__main__"
)
MOST_LATE_IMPORTS = 30
OTHERS = {"sys", "os", "atexit", "finalize", "runpy", "warnings"}  # of Python: none of them are private names of torch
TENSOR_METHODS = frozenset(
    [
        "numel",
        "detach",
        "is_floating_point",
        "is_complex",
        "untyped_storage",
        "storage_offset",
        "element_size",
        "tolist",
        "is_contiguous",
        "to_dense",
        "count_nonzero",
        "requires_grad_",
        "is_inference",
        "isnan",
        "logical_not_",
    ]
)  # names that only tensors have
FAKE = ("fake/", "torch_api/distributed/fake_ranks.py")  # there, torch itself calls what the program has replaced
OF_NAMEDTUPLE = {"_replace", "_fields", "_asdict", "_make"}
MOCKED = {  # by tests of programs, or counted by programs
    *(f"gc.{name}" for name in ("collect", "disable", "enable", "isenabled", "get_objects", "get_referrers")),
    *("gc.freeze", "gc.unfreeze", "gc.get_freeze_count"),
    *(f"signal.{name}" for name in ("signal", "getsignal", "setitimer", "raise_signal", "pthread_kill")),
    *(f"math.{name}" for name in ("isfinite", "isinf", "isnan", "sqrt", "hypot", "prod", "log", "ceil")),
    *(f"time.{name}" for name in ("time", "perf_counter", "monotonic", "sleep")),
    *(f"threading.{name}" for name in ("current_thread", "main_thread", "get_ident", "active_count", "Lock", "RLock")),
    *(f"os.{name}" for name in ("fork", "pipe", "waitpid", "kill", "getpid", "getcwd")),
    *(f"random.{name}" for name in ("random", "getstate", "setstate")),
    *(f"linecache.{name}" for name in ("getline", "getlines", "lazycache")),
    "sys.getrefcount", "operator.mul", "dis.get_instructions", "copy.deepcopy", "pickle.dumps", "pickle.loads",
}  # fmt: skip


def run_python(program: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in a process of its own."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)


def test_all_other_packages_import_without_torch() -> None:
    """In a process where an import of torch fails."""
    done = run_python(
        f"import importlib, sys; sys.modules['torch'] = None\nfor name in {PARTS!r}: importlib.import_module(name)"
    )

    assert done.stderr == ""
    assert len(PARTS) > 40


def test_no_imports_go_in_a_circle() -> None:
    """Not even through imports inside functions or of types, so any file can be understood from those below it."""
    imports = grimp.build_graph("gradinspect")
    order = TopologicalSorter({name: imports.find_modules_directly_imported_by(name) for name in imports.modules})

    order.prepare()  # raises CycleError, with the circle


def test_each_import_that_is_not_at_the_top_says_why() -> None:
    """Ruff finds those without the mark; the reason stands behind it."""
    marks = [
        (str(file.relative_to(PACKAGE)), line.strip())
        for file in sorted(PACKAGE.rglob("*.py"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if "noqa: PLC0415" in line
    ]
    assert [where for where in marks if "#" not in where[1].partition("PLC0415")[2]] == []
    assert len(marks) < MOST_LATE_IMPORTS


def test_no_folder_has_more_than_twenty_files() -> None:
    """A listing that is read at a glance."""
    folders = [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    crowded = {folder.name: len(files) for folder in folders if len(files := list(folder.glob("*.*"))) > 20}

    assert crowded == {}


def parts_of(file: Path) -> list[ast.AST]:
    """Parse a file. What was parsed is not kept: tests that look through all objects would look through it, too."""
    return list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


def private_names(parts: list[ast.AST]) -> Iterator[str]:
    """List the private names of others that a file uses: imported, as attributes, or through getattr and its like."""
    defined = {node.name for node in parts if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    fields = {node.target.id for node in parts if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    for node in parts:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("torch"))
        elif isinstance(node, ast.Attribute) and node.attr not in OF_NAMEDTUPLE | defined | fields:
            owner = node.value.id if isinstance(node.value, ast.Name) else None
            if owner not in {"self", "cls", *OTHERS}:
                yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("attr"):
            yield from (str(arg.value) for arg in node.args[1:2] if isinstance(arg, ast.Constant))


def is_private(name: str) -> bool:
    """Tell whether any part of a dotted name is private; `__dunder__` names belong to Python."""
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


def test_only_torch_api_touches_private_names_of_torch() -> None:
    """Each of them is probed in one place, so that a torch without it takes away one thing and not the program."""
    used = {
        f"{file.relative_to(PACKAGE)}: {name}"
        for file in TORCH_FILES
        for name in private_names(parts_of(file))
        if is_private(name) and name not in OF_NAMEDTUPLE
    }

    assert len(TORCH_FILES) > 300
    assert used == set()


def calls_of_methods(parts: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield calls of tensor methods that are looked up on something, with their lines."""
    for node in parts:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TENSOR_METHODS:
            holder = node.func.value
            if not (isinstance(holder, ast.Name) and holder.id in {"ops", "math"}):
                yield node.lineno, node.func.attr


@pytest.mark.slow
def test_methods_of_tensors_are_not_looked_up() -> None:
    """They may be the program's: NOTE [Our own calls] in `torch_api.patching.originals`."""
    called = {
        f"{place}: {found}"
        for file in PACKAGE.rglob("*.py")
        if not (place := file.relative_to(PACKAGE).as_posix()).startswith(FAKE)
        for found in calls_of_methods(parts_of(file))
    }

    assert called == set()


def calls_of_replaceable(parts: list[ast.AST]) -> Iterator[str]:
    """Yield calls of functions of the standard library that are looked up in their modules."""
    for node in parts:
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            yield f"{called.value.id}.{called.attr}"


def test_what_tests_of_a_program_mock_is_not_looked_up() -> None:
    """It may be the program's while a step runs: NOTE [Our own calls] in `torch_api.patching.originals`."""
    called = {
        f"{file.relative_to(PACKAGE)}: {found}"
        for folder in ("recording", "observers", "torch_api", "checks", "runner", "analyses/gradients")
        for file in (PACKAGE / folder).rglob("*.py")
        if any(name in file.read_text(encoding="utf-8") for name in MOCKED)  # few have to be parsed
        for found in calls_of_replaceable(parts_of(file))
        if found in MOCKED
    }

    assert called == set()


@pytest.mark.parametrize(
    "heavy", ["torch", "graphviz", "yaml", "textual", "gradinspect.renderers.terminal", "gradinspect.renderers.picture"]
)
def test_help_loads_nothing_heavy(heavy: str) -> None:
    """Who asks for help does not wait for what he has not asked for."""
    done = run_python(
        "import contextlib, io, sys; from gradinspect.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): assert main(['--help']) == 0\n"
        f"assert {heavy!r} not in sys.modules"
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_public_names_are_there() -> None:
    """Each one is found, and no other is promised."""
    done = run_python(
        "import gradinspect; [getattr(gradinspect, name) for name in gradinspect.__all__]\n"
        "print(*sorted(gradinspect.__all__))"
    )

    assert done.stdout.split() == sorted(gradinspect.__all__), done.stderr
    assert len(gradinspect.__all__) <= 25


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "has_rules"), [("trace", False), ("check", True)])
def test_a_run_imports_only_what_its_question_needs(verb: str, has_rules: bool) -> None:
    """The rules of `check` alone are more than eighty modules, which no other verb waits for."""
    words = (sys.executable, "-X", "importtime", "-m", "gradinspect", verb, SAMPLE)
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    ours = [line.split("|")[-1].strip() for line in done.stderr.splitlines() if "gradinspect." in line]

    assert any(name.startswith("gradinspect.checks.rules.") for name in ours) == has_rules
    assert "gradinspect.recording.walk" in ours


@pytest.mark.slow
def test_a_run_imports_no_package_that_only_others_need() -> None:
    """Neither pytest nor a trainer nor the explorer's textual need be installed."""
    done = run_python(
        "import sys; sys.modules.update(dict.fromkeys(('pytest', 'textual', 'lightning', 'transformers')))\n"
        f"from gradinspect.cli import main; sys.argv[1:] = ['check', {SAMPLE!r}]; sys.exit(main())"
    )

    assert done.stderr == ""
    assert done.returncode == 0


def test_a_class_name_means_one_thing() -> None:
    """No two modules define a class of the same name; the trainers, of which one is used, both offer a callback."""
    homes: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^class ([^\W_]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            homes.setdefault(name, []).append(path.stem)

    assert {name: found for name, found in homes.items() if len(found) > 1} == {
        "GradInspectCallback": ["lightning", "transformers"]
    }
