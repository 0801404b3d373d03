# expect: GI301
# advice: instead of .data at meta_weights_by_data.py:21
# why: .data returns the values without their graph
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
losses = []
x = torch.linspace(-1, 1, 12).unsqueeze(1)


def adapted(weights, task):
    """Take one step of a task's own."""
    inner = (functional_call(model, weights, (x,)) - torch.sin(3 * x + task)).square().mean()
    grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
    fast = {}
    for (name, weight), grad in zip(weights.items(), grads, strict=True):
        fast[name] = (weight.data - 0.1 * grad.data).requires_grad_(True)  # -
        fast[name] = weight - 0.1 * grad.data  # +
    return fast


def evaluate():
    """Adapt to many tasks before anything has learned."""
    return sum(adapted(dict(model.named_parameters()), 0.01 * task)["0.bias"].sum().item() for task in range(300))


print("before", evaluate())
for _ in range(20):
    optimizer.zero_grad()
    total = 0.0
    for task in (0.0, 0.5, 1.0):
        fast = adapted(dict(model.named_parameters()), task)
        loss = (functional_call(model, fast, (x,)) - torch.sin(3 * x + task)).square().mean() / 3
        loss.backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    losses.append(total)
print("loss", losses[0], losses[-1])
