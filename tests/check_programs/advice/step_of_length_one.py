# expect: GI502
# advice: Which learning rate and eps does optimizer have, and how large are model.0.bias and its gradient
# advice: before that step?
# lines: backward=29 optimizer=11 step=30
import torch
from torch import nn


class OfLengthOne(torch.optim.Optimizer):
    def __init__(self, parameters, lr, eps=0.0):
        super().__init__(parameters, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(group["lr"] * p.grad / (p.grad.norm() + group["eps"]))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
nn.init.zeros_(model[2].weight)
optimizer = OfLengthOne(model.parameters(), lr=0.02)  # -
optimizer = OfLengthOne(model.parameters(), lr=0.02, eps=1e-8)  # +
x, losses = torch.randn(32, 3), []
for _ in range(30):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
