# expect: GI252
# options: --compiled
# advice: Compile with backend='aot_eager_decomp_partition', and report the program to the maintainers of scaling.
# lines: backward=22 compiled=15
import torch
from torch import nn


def scaling(graph, inputs):
    return lambda *given: tuple(1.5 * one for one in graph(*given))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
compiled = torch.compile(model, backend=scaling)  # -
compiled = torch.compile(model, backend="aot_eager_decomp_partition")  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (compiled(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
