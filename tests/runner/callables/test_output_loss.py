"""Backward of what a callable returned."""

import json
from pathlib import Path

import pytest
from runs import gradinspect

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(x)

class Wide(nn.Linear):
    def __init__(self, width, *, depth, bias=True):
        super().__init__(width, depth, bias)

def several(x):
    w = torch.full((3,), 2.0, requires_grad=True)
    return {"a": w * 3, "b": [w.to(torch.complex64), torch.ones(3)]}

def own(x):
    w = torch.ones(3, requires_grad=True)
    (w * 5).sum().backward()
    return w * 7

def cut(x):
    return torch.ones(3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file that only defines what can be called."""
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def gradients(folder: Path, callable_: str, *options: str) -> dict[str | None, float]:
    """Return the largest element of each leaf's gradient."""
    done = gradinspect("grads", f"model.py:{callable_}", "--input", "5x4", "--format", "json", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row["stats"]["max_abs"] for row in json.loads(done.stdout)["parameters"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("callable_", "options", "expected"),
    [
        ("Net()", (), 5.0),
        ("Net()", ("--loss", "out.sum() / 2"), 2.5),
        ("several", (), 4.0),
        ("several", ("--loss", "out['a'].sum()"), 3.0),
        ("own", (), 5.0),
    ],
)
def test_the_loss_is_the_sum_or_what_was_asked(
    folder: Path, callable_: str, options: tuple[str, ...], expected: float
) -> None:
    """Each output counts once, a complex one by its real part; a callable that calls backward itself is left alone."""
    assert expected in gradients(folder, callable_, *options).values()


@pytest.mark.slow
def test_it_is_said_and_every_verb_works(folder: Path) -> None:
    """The user's model alone is the commonest first try."""
    done = gradinspect("check", "model.py:Net()", "--input", "5x4", cwd=folder)

    assert done.returncode == 0
    assert done.stdout == "No problems found in 1 backward call of model.py:Net()\n"
    assert done.stderr == (
        "note: 'model.py:Net()' calls no backward, so backward of the sum of its output was run; --loss chooses "
        "another loss.\n"
    )
    stepped = gradinspect("step", "model.py:Net()", "--input", "5x4", cwd=folder, typed="c")
    assert "Backward is done: 5 steps." in stepped.stdout
    assert "backward #1  <loss>:2  loss.backward()" in stepped.stdout
    traced = gradinspect("trace", "model.py:Net()", "--input", "5x4", "--loss", "out.mean()", cwd=folder)
    assert "root loss: #0 MeanBackward0  f32[]" in traced.stdout
    assert traced.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("check", "model.py:cut"), "The output of 'model.py:cut' contains no tensor with a graph."),
        (("check", "model.py:Net"), "'Net' is a class of modules, not a module. Did you mean 'model.py:Net()'?"),
        (
            ("check", "model.py:Wide"),
            "'Wide' is a class of modules, not a module. Did you mean 'model.py:Wide(width=..., depth",
        ),
        (("check", "model.py"), "'model.py' defines Net, Wide, and computes nothing with a graph. Name what to call"),
        (("trace", "model.py"), "'model.py' defines Net, Wide, and computes nothing with a graph. Name what to call"),
        (("trace", "model.py", "--input", "2"), "'--input' is for a callable, and 'model.py' is run as a whole."),
        (("grads", "model.py:Net()", "--loss", "out["), "'--loss out[' is not a Python expression: '[' was never"),
        (("grads", "model.py:Net()", "--loss", "out"), "'--loss out' is not a scalar (f32[5, 2]). Reduce it, as by"),
        (("grads", "model.py:Net()", "--loss", "3"), "'--loss 3' is not a tensor, but int. Write it with the output"),
        (("grads", "model.py:Net()", "--loss", "out.detach().sum()"), "'--loss out.detach().sum()' has no graph."),
    ],
)
def test_what_cannot_be_a_loss(folder: Path, words: tuple[str, ...], sentence: str) -> None:
    """One sentence, with what to do."""
    inputs = ("--input", "5x4") if ":" in words[1] else ()
    done = gradinspect(*words, *inputs, cwd=folder)

    assert done.returncode == 2
    assert done.stderr.startswith(f"gradinspect: {sentence}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--input", "5x4", "--loss", "out.nope"), "'--loss out.nope' failed with AttributeError."),
        ((), "'Net()' failed with TypeError. Give its inputs: --input 2x3x32x32."),
    ],
)
def test_what_fails_is_named(folder: Path, options: tuple[str, ...], sentence: str) -> None:
    """After the program's own traceback."""
    done = gradinspect("check", "model.py:Net()", *options, cwd=folder)

    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == f"gradinspect: {sentence}"
    assert "gradinspect/" not in done.stderr.replace(str(folder), "")


@pytest.mark.parametrize("verb", ["trace", "fit"])
@pytest.mark.parametrize(
    ("source", "line"),
    [("model.py:Net()", "return self.fc(x)"), ("model.py:stacked()", "return F.linear(input, self.weight, self.bias)")],
)
def test_an_input_of_a_wrong_shape(folder: Path, verb: str, source: str, line: str) -> None:
    """The program's own line is shown, or that of the layer where the program has none on the way; no others."""
    model = folder / "model.py"
    model.write_text(model.read_text() + "\ndef stacked():\n    return nn.Sequential(nn.Sequential(nn.Linear(4, 2)))\n")
    done = gradinspect(verb, source, "--input", "5x3", cwd=folder)
    lines = [text.strip() for text in done.stderr.splitlines()]

    assert done.returncode == 3
    assert [text for text in lines if text.startswith("File ")] == [lines[1]]
    assert lines[2] == line


def test_a_module_that_makes_its_names_when_asked(folder: Path) -> None:
    """As large packages do: with __getattr__ of a module, or with a class of their own; builtins stay what they are."""
    (folder / "lazy.py").write_text(
        "import types, sys, model\n"
        "def __getattr__(name):\n"
        "    if name.startswith('__'): raise AttributeError(name)\n"
        "    return getattr(model, name) if hasattr(model, name) else 'made'\n"
        "class Lazy(types.ModuleType):\n"
        "    def __getattr__(self, name):\n"
        "        if name != 'Net': raise AttributeError(name)\n"
        "        return model.Net\n"
        "sys.modules['lazier'] = Lazy('lazier')\n"
    )
    for source in ("lazy:(len([1]), Net)[1]()", "lazier:Net()"):
        (folder / "lazier.py").write_text("import lazy\n")
        done = gradinspect("trace", source, "--input", "5x4", cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert "fc.weight" in done.stdout
