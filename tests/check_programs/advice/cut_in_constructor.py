# expect: GI301
# lines: detached=14 called=22
import torch
from torch import nn

torch.manual_seed(0)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(1))
        self.layer = nn.Linear(3, 1)
        self.scale = self.log_scale.detach().exp()  # -

    def forward(self, x):
        return self.layer(x) * self.scale  # -
        return self.layer(x) * self.log_scale.exp()  # +


x, y = torch.randn(16, 3), torch.randn(16, 1)
model = Scaled()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
