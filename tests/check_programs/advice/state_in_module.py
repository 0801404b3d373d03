# expect: GI401
# advice: model.h = model.h.detach()
# never: (loss + loss)
# never: retain_graph
import torch
from torch import nn

torch.manual_seed(0)


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.Linear(5, 4), nn.Linear(4, 1)
        self.h = torch.zeros(4)

    def forward(self, x):
        self.h = torch.tanh(self.cell(torch.cat([x, self.h])))
        return self.head(self.h)


model = Tracker()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for _ in range(40):
    loss = (model(torch.ones(1)) - 2).square().mean()
    optimizer.zero_grad()
    loss.backward()
    model.h = model.h.detach()  # +
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
