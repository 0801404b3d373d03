"""The model is evaluated before it is trained, and nothing puts it back into train mode."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(8, 2)

    def forward(self, tokens):
        return self.out(self.dropout(self.embed(tokens).mean(1)))


@torch.no_grad()
def accuracy(model):
    model.eval()
    return (model(torch.randint(30, (8, 6))).argmax(1) == 0).float().mean()


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters())
accuracy(model)
for _ in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randint(30, (4, 6))), torch.randint(2, (4,)))
    loss.backward()
    optimizer.step()
# expect: GI371 eval=20 backward=31 step=32
