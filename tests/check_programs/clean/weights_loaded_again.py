"""A state dict goes back into the model that it came from, and a target is a copy that is brought up to date."""

import copy

import torch
from torch import nn


class Trainer:
    """Saves and restores what it trains, under another name than its caller."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.target = model, copy.deepcopy(model)
        self.model.load_state_dict(model.state_dict())
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def state(self) -> dict[str, dict[str, object]]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def restore(self, state: dict[str, dict[str, object]]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def step(self) -> None:
        x = torch.randn(8, 4)
        with torch.no_grad():
            wanted = 1 + 0.5 * self.target(x)
        self.optimizer.zero_grad()
        (self.model(x) - wanted).square().mean().backward()
        self.optimizer.step()
        self.target.load_state_dict(self.model.state_dict())


network = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
trainer = Trainer(network)
for _ in range(4):
    trainer.step()
    trainer.restore(trainer.state())
