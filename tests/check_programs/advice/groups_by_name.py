# expect: GI361
# why: optimizer holds other parameters of the same model
# advice: Pass them as well at groups_by_name.py:27: let the last group take every parameter that no other group has.
# lines: optimizer=27 backward=35
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.full((4,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what is scaled."""
        return x + self.scale * torch.tanh(self.layer(x))


torch.manual_seed(0)
model = nn.Sequential(Scaled(), nn.Linear(4, 1))
decayed = [one for name, one in model.named_parameters() if name.endswith("weight")]
others = [one for name, one in model.named_parameters() if name.endswith("bias")]  # -
others = [one for name, one in model.named_parameters() if not name.endswith("weight")]  # +
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
optimizer = torch.optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}], lr=0.02)
history = []
for _ in range(8):
    loss = (model(x) - y).square().mean()
    if not history:
        history.append(loss.item())
    model.zero_grad()

    loss.backward()
    optimizer.step()
history.append(loss.item())
print("loss", history[0], history[-1])
