# expect: GI801
# advice: At running_mean_of_the_loss.py:19, store a tensor without history, by detach()
# lines: stored=19 backward=16
# never: running_mean_of_the_loss.py:11
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mean = torch.zeros(())
x, history = torch.randn(16, 8), []
for _ in range(5):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    mean = 0.9 * mean + 0.1 * loss  # -
    mean = 0.9 * mean + 0.1 * loss.item()  # +
print("loss", history[0], history[-1])
