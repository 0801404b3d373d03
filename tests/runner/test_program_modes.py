"""The modes of a program see of its functions and operators, and its modules are asked, what they are without us."""

from pathlib import Path

import pytest
from runs import gradinspect, python

pytestmark = pytest.mark.slow

PROGRAM = """
import collections
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

functions, operators = collections.Counter(), collections.Counter()

class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        functions[getattr(func, "__name__", "")] += 1
        return func(*args, **(kwargs or {}))

class Operators(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        operators[str(func)] += 1
        return func(*args, **(kwargs or {}))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x).tanh()

    def refuse(self, *_):
        raise TypeError("no")

    __eq__ = __len__ = __bool__ = __repr__ = refuse
    __hash__ = nn.Module.__hash__

torch.manual_seed(0)
other, model = Model(), Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
with Functions(), Operators():
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).pow(2).mean().backward()
        optimizer.step()
for name in ("detach", "copy_", "new_empty_strided"):  # torch copies a gradient that we hold
    operators.pop(f"aten.{name}.default", None)
values = [parameter.double().sum().item() for parameter in model.parameters()]
print("seen", sorted(functions.items()), sorted(operators.items()), values)
"""


@pytest.mark.parametrize("verb", ["trace", "check", "grads", "step", "memory --iterations 2", "saved"])
def test_modes_of_a_program_see_what_they_see_without_us(verb: str, tmp_path: Path) -> None:
    """The modules cannot be compared, printed, or asked for a truth value."""
    script = tmp_path / "modes.py"
    script.write_text(PROGRAM)
    plain = python(script, is_measured=False).stdout
    done = gradinspect(*verb.split(), script, "--continue", cwd=tmp_path, is_measured=False)

    assert done.returncode == 0, done.stderr
    assert plain.startswith("seen [('__get__'")
    assert plain.splitlines()[0] in done.stdout.splitlines()
