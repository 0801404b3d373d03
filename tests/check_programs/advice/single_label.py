# expect: GI001
# advice: Give a single label a dimension: at single_label.py:27, pass unsqueeze(0) of it, or y[i : i + 1] instead of
# advice: y[i].
import torch
from torch import nn


class Speller(nn.Module):
    """Predict the next letter from one letter at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 8)
        self.cell = nn.GRUCell(8, 8)
        self.out = nn.Linear(8, 6)


torch.manual_seed(0)
net = Speller()
word = torch.tensor([0, 1, 2, 2, 3, 4, 5])
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(20):
    state, loss = torch.zeros(1, 8), torch.zeros(())
    for i in range(6):
        state = net.cell(net.embed(word[i : i + 1]), state)
        loss = loss + nn.functional.cross_entropy(net.out(state), word[i + 1])  # -
        loss = loss + nn.functional.cross_entropy(net.out(state), word[i + 1].unsqueeze(0))  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
