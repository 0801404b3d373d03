# expect: GI103
# never: Move
# advice: instead of writing to
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
