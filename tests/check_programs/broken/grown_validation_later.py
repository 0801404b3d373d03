"""The loss of each validation is kept with its graph, in a training whose calls repeat each other."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(64, 8), torch.randn(64, 4)


class History:
    def __init__(self) -> None:
        self.values: list[dict[str, torch.Tensor]] = []

    def add(self, **values: torch.Tensor) -> None:
        self.values.append(values)


def train() -> None:
    for part in range(9):
        loss = nn.functional.mse_loss(model(inputs[part::9]), targets[part::9])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    history = History()
    for _ in range(9):
        train()
        history.add(loss=nn.functional.mse_loss(model(inputs), targets))


main()

# expect: GI801 stored=17 backward=24
