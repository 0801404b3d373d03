# expect: GI380
# why: Descent.step() does not change them.
# advice: p.add_(update), where p = p + update only assigns to a variable.
# lines: step=35 backward=34
import torch
from torch import nn


class Descent(torch.optim.Optimizer):
    """Signs of gradients."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                update = -group["lr"] * p.grad.sign()
                p = p + update  # -
                p.add_(update)  # +


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
optimizer = Descent(model.parameters(), lr=0.01)
x, y = torch.randn(48, 6), torch.randint(3, (48,))
history = []
for _ in range(8):
    loss = nn.functional.cross_entropy(model(x), y)
    history.append(loss.item())

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
