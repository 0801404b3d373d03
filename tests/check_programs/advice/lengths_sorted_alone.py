# expect: GI326
# why: takes the inputs by the order of a sort of 16
# advice: or put the outputs back with its argsort().
# lines: order=24 taken=25
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

torch.manual_seed(0)


class Reader(nn.Module):
    """Reads sequences of several lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8, padding_idx=0)
        self.cell = nn.LSTM(8, 16, batch_first=True)
        self.head = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return scores."""

        lengths, order = lengths.sort(descending=True)
        x = x[order]
        packed = pack_padded_sequence(self.words(x), lengths, batch_first=True)
        _, (hidden, _) = self.cell(packed)
        return self.head(hidden[-1])  # -
        return self.head(hidden[-1])[order.argsort()]  # +


model, history = Reader(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
tokens, sizes = torch.randint(1, 20, (16, 9)), torch.arange(3, 10).repeat(3)[:16]
tokens[torch.arange(9) >= sizes[:, None]] = 0
labels = (tokens[:, 0] > 9).long()
for _ in range(12):
    loss = nn.functional.cross_entropy(model(tokens, sizes), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
