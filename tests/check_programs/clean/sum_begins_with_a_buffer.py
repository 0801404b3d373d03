"""A layer begins the sum of its losses with a zero that it has as a buffer, and that requires grad for that."""

import torch
from torch import nn

torch.manual_seed(0)


class Penalized(nn.Module):
    """A layer with losses of its own, none of which may be on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.register_buffer("zero", torch.zeros(()).requires_grad_(), persistent=False)

    def forward(self, x):
        own = self.zero
        y = self.layer(x)
        if x.mean() > 0:
            own = own + y.square().mean()
        return y, own


model = Penalized()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    x = torch.randn(8, 4)
    y, own = model(x)
    loss = (y - x[:, :2]).square().mean() + 0.1 * own
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
