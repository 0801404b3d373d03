"""Sentences of unequal length, one of them empty: averaged over real tokens, with the count clamped to one."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6, padding_idx=0)
        self.mix = nn.Linear(6, 6)
        self.out = nn.Linear(6, 1)

    def forward(self, tokens):
        mask = (tokens != 0).unsqueeze(-1)
        hidden = torch.tanh(self.mix(self.embed(tokens))) * mask
        return self.out(hidden.sum(1) / mask.sum(1).clamp(min=1)).squeeze(-1)


model = Tagger()
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
for _ in range(3):
    sentences = [torch.randint(1, 20, (n,)) for n in (5, 2, 0, 7)]
    labels = torch.tensor([1.0, 0.0, 0.0, 1.0])
    loss = criterion(model(pad_sequence(sentences, batch_first=True)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
