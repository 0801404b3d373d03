"""Early stopping keeps copies of the tensors of a state dict: restoring them restores the best weights."""

import torch
from torch import nn


class Stopping:
    """Keeps the best weights."""

    def __init__(self):
        self.least, self.state = float("inf"), None

    def look(self, value, model):
        """Keep the weights if they are better."""
        if value < self.least:
            self.least = value
            self.state = {name: tensor.cpu().clone() for name, tensor in model.state_dict().items()}

    def restore(self, model):
        """Bring them back."""
        model.load_state_dict(self.state)


torch.manual_seed(0)
model, stopping = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), Stopping()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(16, 4)
for _ in range(6):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    stopping.look(loss.item(), model)
stopping.restore(model)
