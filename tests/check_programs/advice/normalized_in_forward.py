# expect: GI103
# advice: Compute with a new tensor instead of writing to layer.weight at normalized_in_forward.py:18, or compute
# advice: normalized_in_forward.py:19 again after the write.
# never: Move
# lines: backward=32 saved=19 written=18
import torch
from torch import nn

torch.manual_seed(0)


class Decayed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))

    def forward(self, x):
        self.weight.data.mul_(0.99)  # -
        return x @ self.weight.t()  # -
        weight = 0.99 * self.weight  # +
        return x @ weight.t()  # +


layer = Decayed()
head = nn.Linear(4, 1)
optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.05)
x, y = torch.randn(2, 8, 3).requires_grad_(), torch.rand(8, 1)
losses = []
for _ in range(30):
    loss = (head(layer(x[0])) - y).square().mean() + (head(layer(x[1])) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
