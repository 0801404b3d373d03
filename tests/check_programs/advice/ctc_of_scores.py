# expect: GI352
# why: ctc_loss received the output of a layer (module score, Linear)
# advice: Apply log_softmax(-1) to the output of ctc_of_scores.py:20
import torch
from torch import nn

torch.manual_seed(0)


class Acoustic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(6, 16, 3, padding=1)
        self.score = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Score each time."""
        h = self.conv(x.transpose(1, 2)).relu().transpose(1, 2)

        return self.score(h)  # -
        return self.score(h).log_softmax(-1)  # +


model = Acoustic()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, labels = torch.randn(8, 12, 6), torch.randint(1, 5, (8, 4))
times, lengths = torch.full((8,), 12), torch.full((8,), 4)
criterion = nn.CTCLoss()
history = []
for _ in range(8):
    loss = criterion(model(x).permute(1, 0, 2), labels, times, lengths)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
