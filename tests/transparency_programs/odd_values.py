"""Gradients without values, tensors without a shape, classes without a module, numbers with methods of their own."""

import warnings
from collections import Counter

import fingerprint
import torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

warnings.filterwarnings("ignore")
torch.manual_seed(37)
calls = Counter()


def counted(name):
    def method(number, *others):
        calls[name] += 1
        return getattr(float, name)(number, *others)

    return method


NAMES = ("__float__", "__int__", "__bool__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__", "__hash__")
Number = type("Number", (float,), {name: counted(name) for name in (*NAMES, "__mul__", "__rtruediv__", "__format__")})
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
half = Number(0.5)
for group in optimizer.param_groups:
    group["lr"] = Number(0.1)
for _ in range(3):
    optimizer.zero_grad()
    output = model(torch.randn(4, 3))
    hidden = output.masked_fill(output > half, half)
    (output.pow(2).mean() * half + hidden.mean() / half).backward()
    optimizer.step()
print(sorted(calls.items()))

shapes = ShapeEnv()
fakes = FakeTensorMode(shape_env=shapes)
for parameter in model.parameters():
    fake = fakes.from_tensor(parameter, static_shapes=True)
    print(type(fake.grad).__name__, len(shapes.pending_fresh_unbacked_symbols))
program = torch.export.export(model, (torch.randn(4, 3),), strict=False)
print([node.op for node in program.graph.nodes])

for _ in range(3):
    rows = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], requires_grad=True)
    torch.nested.to_padded_tensor(model[0](rows), 0.0).pow(2).sum().backward()
    print(rows.grad.is_nested)

odd = [type("Odd", (torch.nn.Linear,), {"__module__": module})(3, 3) for module in (None, 3, "", "no.such")]
model = torch.nn.Sequential(model, torch.nn.Linear(2, 3), *odd)
kind = type("OddSGD", (torch.optim.SGD,), {"__module__": None})
optimizer = kind(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 3).to(torch.float8_e4m3fn).float()).pow(2).mean().backward()
    optimizer.step()
fingerprint.show(model)
