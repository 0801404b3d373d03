# expect: GI601
# expect: GI379
# why: It multiplies by up, which is zero everywhere and does not require grad, so it stays zero.
# advice: let up learn as well: set its requires_grad before the optimizer is made.
# lines: zeroed=18 backward=33
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 3)
        self.down = nn.Parameter(torch.randn(2, 6))
        self.up = nn.Parameter(torch.zeros(3, 2))

    def forward(self, x):
        return self.base(x) + (x @ self.down.t()) @ self.up.t()


torch.manual_seed(0)
model = Adapted()
for name, parameter in model.named_parameters():
    parameter.requires_grad = name in ("down", "base.bias")  # -
    parameter.requires_grad = name in ("down", "up", "base.bias")  # +
optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=0.02)
x, y = torch.randn(48, 6), torch.randint(3, (48,))
history = []
for _ in range(8):
    loss = nn.functional.cross_entropy(model(x), y)
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
