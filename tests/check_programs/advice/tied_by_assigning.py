# expect: GI375
# advice: model.out.weight = model.words.weight
# lines: shared=20 step=32
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.mix = nn.Linear(8, 8)

    def forward(self, words):
        return self.out(torch.tanh(self.mix(self.words(words))))


torch.manual_seed(0)
model = Model()
model.out.weight.data = model.words.weight.data  # -
model.out.weight = model.words.weight  # +


def train(steps):
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.02), []
    words = torch.arange(12)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words), words.roll(1))
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


found = train(40)
print("loss", found[0], found[-1])
