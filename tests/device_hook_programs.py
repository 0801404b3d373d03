"""Programs in which hooks and custom Functions make graphs inside an ordinary backward call, on a device's thread.

Each of them runs on the CPU too, where one thread makes all nodes. FIRST and SECOND are devices.
"""

HEAD = """\
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
found = []
data = [torch.randn(8, 4, device="cpu").to(FIRST) for _ in range(3)]
"""
TENSOR_HOOK = """
model.to(FIRST)
def on_gradient(gradient):
    with torch.enable_grad():
        found.append((model[0].weight * gradient.detach().sum()).square().sum())
for x in data:
    h = model[0](x)
    h.register_hook(on_gradient)
    loss = model[2](torch.tanh(h)).square().mean()
    if found:
        loss = loss + 0.1 * found.pop().exp()
    loss.backward()
"""
AFTER_ACCUMULATION = """
model.to(FIRST)
def on_gradient(parameter):
    with torch.enable_grad():
        found.append((parameter * parameter.grad).sum().sin())
    parameter.grad = None
for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(on_gradient)
for x in data:
    loss = model(x).square().mean()
    if found:
        loss = loss + torch.stack(found).sum()
        found.clear()
    torch.autograd.backward(loss)
"""
FUNCTION = """
model.to(FIRST)
class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.tanh(x @ weight)
    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = torch.tanh(x @ weight)
            found.append(Double.apply(y).mean())
            return torch.autograd.grad(y, (x, weight), gradient, retain_graph=True)
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2
weight = nn.Parameter(torch.randn(4, 4, device="cpu").to(FIRST))
for x in data:
    loss = Tanh.apply(model[0](x), weight).square().mean()
    if found:
        loss = loss + found.pop()
    loss.backward()
"""
REENTRANT = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        y = torch.relu(self.layer(x))
        if torch.is_grad_enabled():
            found.append(self.layer(x.detach()).square().mean())
        return y
blocks = nn.ModuleList([Block() for _ in range(3)]).to(FIRST)
for x in data:
    x.requires_grad_()
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=True)
    loss = x.square().mean()
    if found:
        loss = loss + sum(found)
        found.clear()
    loss.backward()
"""
TWO_DEVICES = """
model[0].to(FIRST)
model[2].to(SECOND)
def on_gradient(gradient):
    with torch.enable_grad():
        found.append((model[2].weight * gradient.detach().sum()).square().sum().to(FIRST))
for x in data:
    h = torch.tanh(model[0](x)).to(SECOND)
    h.register_hook(on_gradient)
    loss = model[2](h).square().mean()
    if found:
        loss = loss + 0.1 * found.pop().to(SECOND).cos()
    loss.backward()
"""
PENALTY = """
model.to(FIRST)
def on_gradient(gradient):
    with torch.enable_grad():
        x = torch.ones(2, 4, device=FIRST, requires_grad=True)
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        found.append((slope.norm(dim=1) - 1).square().mean())
for x in data:
    h = model[0](x)
    h.register_hook(on_gradient)
    loss = model[2](torch.tanh(h)).square().mean()
    if found:
        loss = loss + found.pop()
    loss.backward()
"""
INSIDE_A_MODULE = """
class Slope(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        x = x.detach().requires_grad_()
        h = self.inner[0](x)
        h.register_hook(on_gradient)
        (slope,) = torch.autograd.grad(self.inner[2](h).sum(), x)
        return self.inner(x) * slope.sum() + found.pop()
def on_gradient(gradient):
    with torch.enable_grad():
        found.append((model[0].weight * gradient.detach().sum()).square().sum())
slopes = Slope(model).to(FIRST)
for x in data:
    slopes(x).square().mean().backward()
"""
FUNCTION_TWICE = """
class SoftPlus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))
    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * torch.sigmoid(x)
model.to(FIRST)
for x in data:
    x.requires_grad_()
    energy = model[2](SoftPlus.apply(model[0](x)))
    (score,) = torch.autograd.grad(-energy.sum(), x, create_graph=True)
    (score.square().sum(1).mean() + energy.square().mean()).backward()
"""
OVERWRITTEN = """
model.to(FIRST)
for x in data:
    x.requires_grad_()
    h = model[0](x).sin_()
    h = model[0](h).mul_(1 + model[0].bias)
    y = model[2](nn.functional.hardswish(h, inplace=True)).sum()
    (slope,) = torch.autograd.grad(y, x, create_graph=True)
    slope.square().mean().backward()
"""
PROGRAMS = {
    "tensor_hook": HEAD + TENSOR_HOOK,
    "after_accumulation": HEAD + AFTER_ACCUMULATION,
    "function": HEAD + FUNCTION,
    "reentrant": HEAD + REENTRANT,
    "two_devices": HEAD + TWO_DEVICES,
    "penalty": HEAD + PENALTY,
    "inside_a_module": HEAD + INSIDE_A_MODULE,
    "function_twice": HEAD + FUNCTION_TWICE,
    "overwritten": HEAD + OVERWRITTEN,
}


def on_devices(text: str, first: str, second: str) -> str:
    """Write a program for two devices, line by line."""
    return text.replace("FIRST", repr(first)).replace("SECOND", repr(second))
