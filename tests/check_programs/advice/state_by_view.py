# expect: GI702
# why: state_by_view.py:21 makes [9, 28] of [4, 9, 7], which an RNN returned, by a view
# advice: bring the sequences to the front first: state.transpose(0, 1).flatten(1)
# lines: viewed=21 backward=33
import torch
from torch import nn

torch.manual_seed(0)


class Reader(nn.Module):
    """Two layers in two directions, and one row of features for each sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 7, num_layers=2, bidirectional=True)
        self.head = nn.Linear(28, 2)

    def forward(self, steps):
        _, state = self.gru(steps)
        rows = state.reshape(steps.shape[1], -1)  # -
        rows = state.transpose(0, 1).flatten(1)  # +
        return self.head(rows)


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
steps, history = torch.randn(6, 9, 3), []
labels = (steps.sum((0, 2)) > 0).long()
for _ in range(12):
    loss = nn.functional.cross_entropy(model(steps), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
