# expect: GI301
# advice: use the tensors themselves at maml_of_copies.py:
# advice: detach nothing on the way
# never: compute the same again
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []


def adapt(x, y):
    fast = {n: p.detach().requires_grad_() for n, p in model.named_parameters()}  # -
    fast = dict(model.named_parameters())  # +
    for _ in range(2):
        inner = (functional_call(model, fast, (x,)) - y).square().mean()
        grads = torch.autograd.grad(inner, list(fast.values()))  # -
        grads = torch.autograd.grad(inner, list(fast.values()), create_graph=True)  # +
        fast = {n: (p - 0.1 * g).detach().requires_grad_() for (n, p), g in zip(fast.items(), grads, strict=True)}  # -
        fast = {n: (p - 0.1 * g) for (n, p), g in zip(fast.items(), grads, strict=True)}  # +
    return fast


for _ in range(10):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(3):
        x = torch.randn(8, 1)
        phase = torch.rand(1)
        y = torch.sin(x + phase)
        fast = adapt(x, y)
        loss = (functional_call(model, fast, (x,)) - y).square().mean()
        total = total + loss
    total.backward()
    optimizer.step()
    losses.append(total.item())
print("loss", losses[0], losses[-1])
