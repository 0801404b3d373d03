# expect: GI001
# why: can be gone through once. counted_before.py:13 reads it before
# advice: Write trained = list(filter(lambda p: p.requires_grad, net.parameters())) at counted_before.py:12.
# lines: made=12 failed=15
import torch
from torch import nn


def optimizer_of(net: nn.Module) -> torch.optim.Optimizer:
    """Make the optimizer, and say how much it will train."""
    # Frozen layers are left out.
    trained = filter(lambda p: p.requires_grad, net.parameters())  # -
    print(sum(p.numel() for p in trained), "numbers are trained")  # -
    # The counted parameters are trained.
    return torch.optim.AdamW(trained, lr=0.05)  # -
    trained = list(filter(lambda p: p.requires_grad, net.parameters()))  # +
    print(sum(p.numel() for p in trained), "numbers are trained")  # +
    return torch.optim.AdamW(trained, lr=0.05)  # +


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = optimizer_of(net)
x = torch.randn(64, 6)
history = []
for _ in range(10):
    loss = (net(x) - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
