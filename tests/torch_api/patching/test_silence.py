"""What we run shows no warning, and the program's own are shown as often as without us."""

import warnings
from pathlib import Path
from typing import Any

import pytest
from runs import python

from gradinspect.torch_api.patching.silence import Silence

LIBRARY = """
import warnings
import torch
warnings.simplefilter("default")

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2

def step():
    warnings.warn("at the same place")
    optimizer.zero_grad()
    Double.apply(model(torch.ones(2, 3))).sum().backward()
    optimizer.step()

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step()
import gradinspect as gi
with gi.record():
    step()
gi.check(step)
gi.fit(step)
gi.capture(model(torch.ones(2, 3)).sum())
"""


def shown_once(action: str) -> str:
    """Show a warning, run something, and show it again."""
    registry: dict[Any, int] = {}
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(2):
            warnings.warn_explicit("at one place", UserWarning, "program.py", 1, registry=registry)
            exec(action, {"Silence": Silence, "warnings": warnings})  # noqa: S102
    return ", ".join(str(warning.message) for warning in shown)


SILENT = """with Silence():
    warnings.warn("ours")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
"""


def test_python_does_not_forget_what_it_has_shown() -> None:
    """As it does after `catch_warnings`: NOTE [Warnings shown once]."""
    with_catching = shown_once("with warnings.catch_warnings():\n    warnings.simplefilter('ignore')")

    assert with_catching == "at one place, at one place"
    assert shown_once(SILENT) == "at one place"


def test_everything_is_put_back() -> None:
    """Also after an error, and what changes filters later does so."""
    names = ("filters", "_filters_mutated", "showwarning")
    before = [getattr(warnings, name, None) for name in names]

    with pytest.raises(KeyError), Silence():
        raise KeyError

    after = [getattr(warnings, name, None) for name in names]
    assert all(one is other for one, other in zip(before, after, strict=True))


@pytest.mark.slow
def test_the_library_does_not_show_warnings_of_the_program_again(tmp_path: Path) -> None:
    """Neither when it is imported nor in any block."""
    script = tmp_path / "train.py"
    script.write_text(LIBRARY)

    done = python(script)

    assert done.returncode == 0
    assert done.stderr.count("at the same place") == 2  # with the line of source under it
