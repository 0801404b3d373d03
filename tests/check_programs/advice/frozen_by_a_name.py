# expect: GI379
# why: spares what is called 'lora'. No parameter is called so.
# advice: Which parameters should learn? Ask for a part of their names at frozen_by_a_name.py:25, in place of 'lora'.
# lines: frozen=25
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(4, 4)
        self.down = nn.Linear(4, 2, bias=False)
        self.up = nn.Linear(2, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what is learned."""
        return self.base(x) + self.up(self.down(x))


torch.manual_seed(0)
model = nn.Sequential(Adapted(), nn.Tanh(), nn.Linear(4, 1))
for name, param in model.named_parameters():
    if not ("lora" in name or name.startswith("2.")):  # -
        param.requires_grad_(False)  # -
    if not ("down" in name or "up" in name or name.startswith("2.")):  # +
        param.requires_grad_(False)  # +
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=0.05)
history = []
for _ in range(8):
    loss = (model(x) - y).square().mean()
    if not history:
        history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
history.append(loss.item())
print("loss", history[0], history[-1])
