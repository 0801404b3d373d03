"""A checkpoint is trained on without dropout, in eval mode from the first call on."""

import io

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(8, 2)

    def forward(self, tokens):
        return self.out(self.dropout(self.embed(tokens).mean(1)))


def load(file):
    model = Classifier()
    model.load_state_dict(torch.load(file))
    return model.eval()


torch.manual_seed(0)
file = io.BytesIO()
torch.save(Classifier().state_dict(), file)
file.seek(0)
model = load(file)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randint(30, (4, 6))), torch.randint(2, (4,)))
    loss.backward()
    optimizer.step()
