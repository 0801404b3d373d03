# expect: GI374
# why: weight and bias do not require grad, so nothing trains them.
# advice: Call model['body'].requires_grad_(True) at module_flag_to_unfreeze.py:18
# lines: set=18 backward=24
import torch
from torch import nn

torch.manual_seed(0)
model = nn.ModuleDict({"body": nn.Linear(4, 8), "head": nn.Linear(8, 1)})


def freeze(part: nn.Module) -> None:
    for one in part.parameters():
        one.requires_grad = False


freeze(model["body"])
model["body"].requires_grad = True  # -
model["body"].requires_grad_(True)  # +
x, history = torch.randn(16, 4), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(6):
    loss = (model["head"](torch.tanh(model["body"](x))) - 1).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    history.append(loss.item())
print("loss", history[0], history[-1])
