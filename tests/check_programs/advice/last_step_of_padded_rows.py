# expect: GI711
# why: 120 of 160 rows that GRU got at last_step_of_padded_rows.py:28 end in padding, token 0.
# advice: At last_step_of_padded_rows.py:29, take the step of the last token of each row:
# advice: out[torch.arange(len(out)), lengths - 1], where lengths has the number of tokens of each row. Or give GRU the
# advice: rows packed, by pack_padded_sequence().
# lines: ran=28 taken=29
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(0)
rows = [torch.randint(1, 20, (2 + 10 * (number % 4 == 0),)) for number in range(32)]
lengths = torch.tensor([len(row) for row in rows])
tokens = pad_sequence(rows, batch_first=True)
labels = torch.tensor([float(row[0] > 10) for row in rows])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 1)

    def forward(self, ids):
        words = self.embed(ids)

        out, _ = self.rnn(words)
        last = out[:, -1]  # -
        last = out[torch.arange(len(out)), lengths - 1]  # +
        return self.head(last).squeeze(1)


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
history = []
for _ in range(5):
    loss = nn.functional.binary_cross_entropy_with_logits(model(tokens), labels)
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
