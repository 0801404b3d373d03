# expect: GI302
# lines: detached=15
# advice: Remove the decorator at decorated_no_grad.py:15
import torch
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    @torch.no_grad()  # -
    def forward(self, x):
        return self.body(x)


def loss_of(model, x, y):
    return (model(x) - y).square().mean()


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(16, 3), torch.randn(16, 1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
