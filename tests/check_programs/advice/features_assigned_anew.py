# expect: GI303
# lines: replaced=18
# advice: Let features_assigned_anew.py:18 read x
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """Classify."""
        x = torch.relu(self.first(given))
        x = torch.relu(self.second(x))  # +
        x = torch.relu(self.second(given))  # -
        return self.head(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, y = torch.randn(16, 8), torch.randint(0, 2, (16,))
history = []
for _ in range(8):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
