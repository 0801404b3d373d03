# expect: GI303
# why: only the last value is left
# advice: Set loss to 0 before the loop, and add to it at loss_of_the_last_head.py:19
import torch
from torch import nn

torch.manual_seed(0)
body = nn.Linear(4, 8)
heads = nn.ModuleDict({name: nn.Linear(8, 2) for name in ("first", "second", "third")})
optimizer = torch.optim.Adam([*body.parameters(), *heads.parameters()], lr=0.02)


def total(h: torch.Tensor, targets: dict[str, torch.Tensor]) -> torch.Tensor:
    """Compare what each head predicts."""
    loss = torch.zeros(())  # +
    for name, head in heads.items():
        predicted = head(h)
        loss = loss + nn.functional.mse_loss(predicted, targets[name])  # +
        loss = nn.functional.mse_loss(predicted, targets[name])  # -
    return loss


x = torch.randn(16, 4)
targets = {name: torch.randn(16, 2) for name in heads}
history = []
for _ in range(8):
    loss = total(torch.tanh(body(x)), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
