# expect: GI801
# advice: Detach what one iteration hands on to the next: after loss.backward() at sum_kept_over_iterations.py:18, add
# advice: 'mean = mean.detach()'. Ignore this if gradients must flow through all iterations.
# lines: backward=18 new=15 old=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, losses = torch.randn(32, 4), []
mean = torch.zeros(1)
for _ in range(20):
    out = model(x)
    mean = 0.9 * mean + 0.1 * out.mean(0)
    loss = (out - x[:, :1]).square().mean() + 0.1 * mean.sum()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    mean = mean.detach()  # +
    losses.append((out - x[:, :1]).square().mean().item())
print("loss", losses[0], losses[-1])
