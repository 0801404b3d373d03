# expect: GI401
# advice: All losses are known before losses_of_one_trunk.py:29, and share a part: add them up in the loop, and call
# advice: backward() once on the sum, after it.
# lines: old=18 backward=29
import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(6, 24), nn.Tanh())
heads = nn.ModuleDict({"kind": nn.Linear(24, 3), "depth": nn.Linear(24, 1)})
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=0.01)
x = torch.randn(64, 6)
kind, depth, weights, history = x[:, :3].argmax(1), x.sum(1, keepdim=True), {"kind": 1.0, "depth": 0.5}, []


def losses(x):
    """Compute both losses of what both read."""
    features = trunk(x)
    return {
        "kind": nn.functional.cross_entropy(heads["kind"](features), kind),
        "depth": nn.functional.mse_loss(heads["depth"](features), depth),
    }


for _ in range(20):
    optimizer.zero_grad()
    total = 0.0
    for name, value in losses(x).items():
        (weights[name] * value).backward()  # -
        total = total + weights[name] * value
    total.backward()  # +
    optimizer.step()
    history.append(float(total))
print("loss", history[0], history[-1])
