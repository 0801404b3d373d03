"""Which attributes were meant to be `requires_grad`, and which line sets them."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.training.flags import (
    FoundFlag,
    flags_of_modules,
    flags_of_tensors,
    is_misspelled,
    line_of_flag,
)

SOURCE = """\
class Net:
    def freeze(self):
        for p in self.parameters():
            p.requires_grad = False
        self.out.weight.requires_grad = False
        for layer in self.layers:
            layer.requires_grad = False
        self.body.requires_grad = False
        setattr(self.body.weight, "require_grads", False)
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a module of the program."""
    file = tmp_path / "net_of_the_program.py"
    file.write_text(SOURCE)
    module = ModuleType("net_of_the_program")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_names_that_are_nearly_right_are_misspelled() -> None:
    """Other attributes about gradients are the program's own."""
    misspelled = [
        "require_grad",
        "requires_gard",
        "requiresGrad",
        "requires_gradient",
        "requires_grads",
        "require_gard",
    ]

    assert all(map(is_misspelled, misspelled))
    assert is_misspelled("requires_grad_")  # the method was overwritten
    assert not any(map(is_misspelled, ["requires_grad", "grad", "requires_grad_sync", "main_grad", "sync_grad", "x"]))


def test_only_a_flag_that_is_false_was_meant_to_freeze() -> None:
    """Of a tensor, or of a module that has parameters which require grad."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU())
    vars(model[0])["requires_grad"] = False
    vars(model[1])["requires_grad"] = True
    vars(model[2])["requires_grad"] = False
    first = model[0].weight
    vars(first)["require_grad"] = False
    vars(model[1].weight)["require_grad"] = True
    leaves: list[tuple[torch.Tensor, str]] = [(p, name) for name, p in model.named_parameters()]

    assert list(flags_of_tensors(leaves)) == [FoundFlag("require_grad", ("0.weight",))]
    assert list(flags_of_modules([model], leaves)) == [FoundFlag("requires_grad", ("0.weight", "0.bias"), "0")]
    model[0].requires_grad_(False)
    assert list(flags_of_modules([model], leaves)) == []


@pytest.mark.slow
@pytest.mark.usefixtures("source")
def test_the_line_is_the_one_that_sets_it_of_a_module() -> None:
    """The one with the module's name rather than the first, and none that sets it of a tensor."""

    def found(attribute: str, module: str | None) -> tuple[int, str] | None:
        line = line_of_flag(FoundFlag(attribute, ("weight",), module))
        return line and (line.line, line.target)

    assert found("requires_grad", "layers.0") == (7, "layer")
    assert found("requires_grad", "body") == (8, "self.body")
    assert found("require_grads", None) == (9, "self.body.weight")
    assert found("requires_grad_", None) is None


@pytest.mark.slow
@pytest.mark.usefixtures("source")
@pytest.mark.parametrize(
    ("loop", "target", "line"),
    [
        ("p in net.parameters()", "p", None),
        ("name, p in net.named_parameters()", "p", None),
        ("name, p in net.named_parameters()", "other", 2),
        ("p in net.parameters()", "net.body", 2),
        ("key in net.state_dict()", "key", None),
        ("part in net.children()", "part", 2),
        ("part in net.children()", "part.weight", None),
        ("part in net.children()", "weight", 2),
    ],
)
def test_a_loop_tells_what_its_own_variable_is(tmp_path: Path, loop: str, target: str, line: int | None) -> None:
    """Of what else is set in it, it tells nothing."""
    file = tmp_path / "net_of_the_program.py"
    file.write_text(f"for {loop}:\n    {target}.requires_grad = False\n")
    found = line_of_flag(FoundFlag("requires_grad", ("weight",), "body"))

    assert (found and (found.line, found.target)) == (line and (line, target))


@pytest.mark.usefixtures("source")
def test_a_class_that_reads_the_attribute_has_a_flag_of_its_own(tmp_path: Path) -> None:
    """It may be set from outside."""
    file = tmp_path / "net_of_the_program.py"
    file.write_text(SOURCE + "        return self.requires_grad\n")

    assert line_of_flag(FoundFlag("requires_grad", ("weight",), "body")) is None


@pytest.mark.slow
@pytest.mark.usefixtures("source")
def test_another_file_may_set_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two, one has a flag of its own, or sets that of tensors; a line with the name counts more than one before."""
    (tmp_path / "net_of_the_program.py").write_text(SOURCE + "        return self.requires_grad\n")
    lines = {"of_tensors.py": "p.weight.requires_grad = False\n", "of_other.py": "head.requires_grad = False\n"}
    lines["of_body.py"] = "net.body.requires_grad = False\n"
    for name, text in lines.items():
        (tmp_path / name).write_text(text)
        module = ModuleType(name.removesuffix(".py"))
        module.__file__ = str(tmp_path / name)
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def found(path: str) -> str | None:
        line = line_of_flag(FoundFlag("requires_grad", ("weight",), path))
        return line and Path(line.file).name

    assert found("encoder.body") == "of_body.py"
    assert found("encoder") == "of_other.py"
