"""The outputs of every validation batch are kept for a metric, with their graphs: no_grad is missing."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train, held_out = torch.randn(4, 8, 4), torch.randn(2, 8, 4)


def main() -> None:
    outputs = []
    for _ in range(5):
        for x in train[:2]:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for x in held_out:
            outputs.append(model(x))
    print(torch.cat(outputs).shape)


main()

# options: --steps 8
# expect: GI801 stored=21 backward=18
