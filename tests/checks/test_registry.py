"""One declaration makes a rule known everywhere; a new file in checks/rules needs no entry anywhere else."""

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradinspect.checks.findings import Finding
from gradinspect.checks.registry import codes, collect, declared, registry, rule_of
from gradinspect.checks.rule import Rule

PACKAGE = Path(__file__).parent.parent.parent / "gradinspect"
RULE = '''
"""A rule of a test."""

from collections.abc import Iterator

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding, place_of
from gradinspect.checks.rule import Judge, Rule

ODD = Rule(
    code="GI999",
    title="loss is called odd",
    summary="The variable of the loss is called odd.",
    explanation="Names matter.",
    change="- odd = x.sum()\\n+ loss = x.sum()\\n- odd.backward()\\n+ loss.backward()\\n",
    remedy="Rename it.",
)


def odd_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Look at the names of the roots."""
    for root in starts.graph.roots:
        if root.name == "odd":
            yield ODD.finding(
                text="It is called odd.", places=place_of("backward", starts.backward), remedy="Rename it."
            )


JUDGE = Judge(BackwardStarts, odd_findings)
'''
PROGRAM = "import torch\nx = torch.ones(3, requires_grad=True)\nodd = x.exp().sum()\nodd.backward()\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has one file more, and a program."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / "gradinspect", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "gradinspect" / "checks" / "rules" / "losses" / "odd_names.py").write_text(RULE)
    (folder / "program.py").write_text(PROGRAM)
    return folder


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run Python with the copy of the package."""
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=300, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "80"},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "is_found"),
    [
        ((), True),
        pytest.param(("--only", "GI999"), True, marks=pytest.mark.sweep),
        (("--only", "gi9"), True),
        pytest.param(("--skip", "GI999"), False, marks=pytest.mark.sweep),
    ],
)
def test_check_finds_a_rule_of_one_new_file(copy: Path, options: tuple[str, ...], is_found: bool) -> None:
    """With its code and title, and both options know the code."""
    done = run(copy, "-m", "gradinspect", "check", "program.py", *options)

    assert done.stderr == ""
    assert done.stdout.startswith("GI999  loss is called odd\n  backward  program.py:4  odd.backward()\n") == is_found
    assert done.returncode == int(is_found)


@pytest.mark.slow
def test_every_format_shows_a_rule_of_one_new_file(copy: Path) -> None:
    """As JSON and as an annotation."""
    document = json.loads(run(copy, "-m", "gradinspect", "check", "program.py", "--format", "json").stdout)
    annotation = run(copy, "-m", "gradinspect", "check", "program.py", "--format", "github").stdout

    assert [finding["code"] for finding in document["findings"]] == ["GI999"]
    assert "line=4,title=GI999 loss is called odd::" in annotation


def test_explain_knows_a_rule_of_one_new_file(copy: Path) -> None:
    """Title, sentence, sample and its repaired form."""
    done = run(copy, "-m", "gradinspect", "explain", "gi999")

    assert done.stdout.startswith("GI999  loss is called odd\n\nThe variable of the loss is called odd.\n")
    assert "  - odd = x.sum()\n" in done.stdout
    assert "  + loss = x.sum()\n" in done.stdout


def test_explain_needs_no_torch(copy: Path) -> None:
    """Where it is not installed, a code can be looked up all the same."""
    hide = "import sys; sys.modules['torch'] = None"
    program = f"{hide}; from gradinspect.cli import main; sys.exit(main(['explain', 'GI102']))"
    done = run(copy, "-c", program)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("GI102  optimizer stepped between forward and backward\n")


def test_the_table_of_codes_has_a_rule_of_one_new_file(copy: Path) -> None:
    """docs/codes.md, as the command writes it."""
    (copy / "docs").mkdir()
    shutil.copy(PACKAGE.parent / "docs" / "codes.py", copy / "docs")
    done = run(copy, "docs/codes.py")
    page = (copy / "docs" / "codes.md").read_text(encoding="utf-8")

    assert done.returncode == 0, done.stderr
    assert (
        "| [GI999](#gi999) | loss is called odd | The variable of the loss is called odd. | `odd = x.sum()` |" in page
    )
    assert page.index("## GI902\n") < page.index("## GI999\n")


def test_codes_are_sorted() -> None:
    """As lists show them."""
    assert list(codes()) == sorted(codes())


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"a": RULE, "b": RULE}, "'GI999' in rules_of_a_test.b is declared by another rule already."),
        ({"a": RULE.replace("GI999", "GI99")}, "'GI99' in rules_of_a_test.a is not a valid code"),
    ],
)
def test_a_code_belongs_to_one_rule(
    files: dict[str, str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is GI with three digits; what is wrong is said with its module."""
    package = tmp_path / "rules_of_a_test"
    package.mkdir()
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == package.name]:
        monkeypatch.delitem(sys.modules, name)

    with pytest.raises(ValueError, match=re.escape(problem)):
        collect(importlib.import_module(package.name))


def test_a_finding_without_a_rule_is_a_bug() -> None:
    """`explain` could not explain it, so it is not shown."""
    finding = Finding(code="GI999", title="", text="", places=(), remedy="")

    with pytest.raises(ValueError, match="declares 'GI999'"):
        declared([finding])


def test_each_rule_makes_findings_of_its_own() -> None:
    """Code and title are those of the declaration."""
    for code, rule in registry().rules.items():
        finding = rule.finding(text="why", places=(), remedy="what to do")

        assert (finding.code, finding.title) == (code, rule.title)
        assert rule_of(code) is rule


def calls_of(tree: ast.Module, name: str) -> list[ast.Call]:
    """List the calls of a function or class."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


@pytest.mark.slow
def test_only_a_declared_rule_makes_a_finding() -> None:
    """No other code constructs one, and no code of a rule steers anything outside its declaration."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        given = [keyword.value for call in calls_of(tree, "Rule") for keyword in call.keywords]
        keywords = {id(node) for value in given for node in ast.walk(value)}
        literals = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and re.fullmatch(r"GI\d+", str(node.value)) and id(node) not in keywords
        ]

        assert not calls_of(tree, "Finding") or path == PACKAGE / "checks" / "rule.py", path
        assert not calls_of(tree, "Rule") or PACKAGE / "checks" / "rules" in path.parents, path
        assert literals == [], path


def test_a_sample_is_a_change_to_its_repaired_form() -> None:
    """One text has the lines that stay, that go and that come."""
    change = "  x = 1\n- odd = x.sum()\n+ loss = x.sum()\n\n- odd.backward()\n+ loss.backward()\n"
    doc = Rule(code="GI999", title="", summary="", explanation="", change=change, remedy="")

    assert (doc.sample, doc.fixed) == (
        "x = 1\nodd = x.sum()\n\nodd.backward()\n",
        "x = 1\nloss = x.sum()\n\nloss.backward()\n",
    )
