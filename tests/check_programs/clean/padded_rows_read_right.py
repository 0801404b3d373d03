"""The last step of rows: packed, filled up before their beginning, taken by length, or of equal length."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

torch.manual_seed(0)
rows = [torch.randint(1, 20, (2 + 5 * (number % 4 == 0),)) for number in range(16)]
lengths = torch.tensor([len(row) for row in rows])
behind = pad_sequence(rows, batch_first=True)
before = pad_sequence([row.flip(0) for row in rows], batch_first=True).flip(1)
equal = torch.randint(1, 20, (16, 7))
labels = torch.tensor([float(row[0] > 10) for row in rows])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 1)

    def forward(self, ids, how):
        words = self.embed(ids)
        if how == "packed":
            _, last = self.rnn(pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False))
            return self.head(last[-1]).squeeze(1)
        out, _ = self.rnn(words)
        if how == "by length":
            return self.head(out[torch.arange(len(out)), lengths - 1]).squeeze(1)
        return self.head(out[:, -1]).squeeze(1)


for how, ids in (("packed", behind), ("by length", behind), ("before", before), ("equal", equal)):
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids, how), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(how, loss.item())
