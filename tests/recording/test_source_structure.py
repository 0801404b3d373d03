"""What surrounds a line in its file."""

import ast
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from gradinspect.recording.source_structure import (
    assignments_of,
    attribute_reads,
    attribute_writes,
    calls_at,
    calls_in,
    calls_of,
    enclosing,
    first_line,
    forgotten_assignments,
    gradient_reads,
    last_line,
    own_sources,
    spared_names,
)

SOURCE = """\
import torch


@torch.no_grad()
def features(x):
    with torch.enable_grad(), open("f") as f:
        if x is not None:
            return net(
                x,
            )
    return x
"""


def test_the_scopes_around_a_line(tmp_path: Path) -> None:
    """The innermost first; a decorated function begins at its decorator."""
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    around = [node for node in enclosing(str(file), 9) if isinstance(node, ast.stmt)]

    assert [type(node).__name__ for node in around] == ["Return", "If", "With", "FunctionDef"]
    assert (first_line(around[-1]), last_line(around[-1])) == (4, 11)
    assert list(calls_in(around[0])) == ["net"]


def test_what_is_no_source_has_no_scopes(tmp_path: Path) -> None:
    """A file that is not there, and one that is no Python."""
    broken = tmp_path / "broken.py"
    broken.write_text("def (:\n")

    assert enclosing(str(tmp_path / "none.py"), 1) == []
    assert enclosing(str(broken), 1) == []


NET = """\
class Net:
    def __init__(self):
        self.scale = 1
        setattr(self, "scale", 2)
        setattr(self, "other", 3)
        self.zebra = self.scale

    def run(self, model):
        if model.scale:
            model.scale = self.scale + 1
        model.step().save()
        self.step(model)
        step(model)
"""


def test_what_a_file_does_with_an_attribute_or_a_method(tmp_path: Path) -> None:
    """Where it is set, by an assignment or by setattr(), in order of lines; what it is read of; its calls."""
    file = tmp_path / "net.py"
    file.write_text(NET)
    writes = [
        (ast.unparse(target), target.lineno, [type(one).__name__ for one in around if isinstance(one, ast.stmt)])
        for target, around in attribute_writes(str(file), "scale")
    ]

    assert writes == [
        ("self", 3, ["Assign", "FunctionDef", "ClassDef"]), ("self", 4, ["Expr", "FunctionDef", "ClassDef"]),
        ("model", 10, ["Assign", "If", "FunctionDef", "ClassDef"]),
    ]  # fmt: skip
    assert sorted(attribute_reads(str(file), "scale")) == ["model", "self", "self"]
    assert [ast.unparse(call) for call in calls_of(str(file), "step")] == ["self.step(model)", "model.step()"]
    assert list(attribute_writes(str(tmp_path / "none.py"), "scale")) == []
    assert [ast.unparse(call) for call in calls_of(str(tmp_path / "none.py"), "step")] == []


def test_the_programs_own_files_with_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script first; neither those without the text, nor those of Python and of packages, nor what has no file."""
    files = {}
    for name in ("script", "helper", "unrelated"):
        files[name] = tmp_path / f"{name}.py"
        files[name].write_text("model.eval()\n" if name != "unrelated" else "pass\n")
        module = ModuleType("__main__" if name == "script" else name)
        module.__file__ = str(files[name])
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "nothing", None)

    assert next(own_sources("model.eval()")) == str(files["script"])
    found = [Path(file).name for file in own_sources("model.eval()") if Path(file).parent == tmp_path]
    assert found == ["script.py", "helper.py"]
    assert not [file for file in own_sources("def ") if file.startswith(sysconfig.get_path("stdlib") + "/ast")]


def test_a_node_that_says_no_last_line_ends_on_its_first() -> None:
    """A tree may be made by hand."""
    made = ast.Name("x")
    made.lineno = 7

    assert (first_line(made), last_line(made)) == (7, 7)


SPARED = [
    ("p.requires_grad = 'lora' in name or 'head' in name", [("in", ["lora"]), ("in", ["head"])]),
    ("p.requires_grad_(not name.startswith('body'))", []),
    ("p.requires_grad_(any(one in name for one in ('a', 'b')))", [("in", ["a", "b"])]),
    ("if 'fc' not in name:\n        p.requires_grad = False", [("in", ["fc"])]),
    ("if 'body' in name:\n        p.requires_grad = False", []),
    ("if name.endswith('bias'):\n        pass\n    else:\n        p.requires_grad = False", [("endswith", ["bias"])]),
    ("if name.startswith(('a', 'b')):\n        continue\n    p.requires_grad = False", [("startswith", ["a", "b"])]),
    ("if any(one in name for one in wanted) or name == 'x':\n        continue\n    p.requires_grad = False", []),
]


@pytest.mark.parametrize(("body", "spared"), SPARED)
def test_the_names_that_a_loop_spares(body: str, spared: list[tuple[str, list[str]]], tmp_path: Path) -> None:
    """Those that keep a parameter from being frozen, not those by which it is."""
    file = tmp_path / "train.py"
    file.write_text(f"for name, p in model.named_parameters():\n    {body}\n")
    line = next(number for number, text in enumerate(file.read_text().split("\n"), 1) if "requires_grad" in text)

    assert list(spared_names(str(file), line)) == spared


def test_a_loop_over_something_else_spares_nothing(tmp_path: Path) -> None:
    """Its condition may be about anything."""
    file = tmp_path / "train.py"
    file.write_text("for name in names:\n    p.requires_grad = 'lora' in name\n")

    assert not list(spared_names(str(file), 2))
    assert not list(spared_names(str(file), 9))


LOOP = "def follow(average, model):\n    for a, p in zip(average.parameters(), model.parameters()):\n        {}\n{}"


@pytest.mark.parametrize(
    ("body", "after", "names"),
    [
        ("a = 0.9 * a + 0.1 * p", "", ["a"]),
        ("if p.ndim:\n            p = p.clamp(0, 1)", "", ["p"]),
        ("a = a.mul_(0.9)", "", []),
        ("a = p * 2", "", []),
        ("a += p", "", []),
        ("a = 2 * a; kept.append(a)", "        print(a)", []),
        ("a = 2 * a", "    return a", []),
        ("while True:\n            a = 2 * a", "", []),
    ],
)
def test_what_a_loop_over_parameters_computes_for_nothing(
    body: str, after: str, names: list[str], tmp_path: Path
) -> None:
    """Its own variable, made anew of itself, which nothing in the function reads later."""
    file = tmp_path / "loop.py"
    file.write_text(LOOP.format(body, after) + "\n\n\nprint(a)\n")

    assert [name for name, _ in forgotten_assignments(str(file))] == names


def test_a_loop_over_data_may_drop_what_it_computes(tmp_path: Path) -> None:
    """A target that is moved to a device, and not used."""
    file = tmp_path / "loop.py"
    file.write_text("for x, y in loader:\n    y = y.to(device)\n")

    assert not list(forgotten_assignments(str(file)))


def test_the_calls_of_a_line_and_what_assigns_an_attribute(tmp_path: Path) -> None:
    """Each by its text."""
    file = tmp_path / "agent.py"
    file.write_text("self.net = a\nself.copy = b = self.net\nself.copy.load(self.net.state())\nself.net.load(0)\n")

    assert [one.lineno for one in assignments_of(str(file), "self.copy")] == [2]
    assert [ast.unparse(one.func.value) for one in calls_at(str(file), "load", 3)] == ["self.copy"]


def test_what_reads_gradients_is_told_from_the_function_of_that_name(tmp_path: Path) -> None:
    """Writing one reads none; clipping does."""
    file = tmp_path / "train.py"
    file.write_text(
        "x.grad = None\n"
        "norm = weight.grad.norm()\n"
        "autograd.grad(loss, x)\n"
        "torch.autograd.grad(loss, x)\n"
        "nn.utils.clip_grad_norm_(\n    weights, 1.0)\n"
    )
    assert [(first_line(node), last_line(node)) for node in gradient_reads(str(file))] == [(5, 6), (2, 2)]
