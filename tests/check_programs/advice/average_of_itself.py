# expect: GI377
# why: average_of_itself.py:25 adds weight to a tensor in the same memory
# advice: Copy the values at average_of_itself.py:14
# lines: shared=14 added=25
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, history = torch.randn(16, 4), []


average = {name: one.data for name, one in model.named_parameters()}  # -
average = {name: one.data.clone() for name, one in model.named_parameters()}  # +
for _ in range(6):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    for name, one in model.named_parameters():
        kept = average[name]

        kept.mul_(0.9).add_(one.data, alpha=0.1)
print("loss", history[0], history[-1])
