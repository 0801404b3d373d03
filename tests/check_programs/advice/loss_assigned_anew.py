# expect: GI303
# lines: last=24 replaced=27
# why: loss of loss_assigned_anew.py:24 is assigned anew at loss_assigned_anew.py:27
# advice: 'loss = loss + nn.functional.cross_entropy(classes, label)'
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.boxes, self.classes = nn.Linear(16, 4), nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Predict a box and a class."""
        h = torch.relu(self.body(x))
        return self.boxes(h), self.classes(h)


def losses(model: nn.Module, x: torch.Tensor, box: torch.Tensor, label: torch.Tensor | None) -> torch.Tensor:
    """Compare both."""
    boxes, classes = model(x)
    loss = nn.functional.smooth_l1_loss(boxes, box)
    if label is not None:
        loss = loss + nn.functional.cross_entropy(classes, label)  # +
        loss = nn.functional.cross_entropy(classes, label)  # -
    return loss


torch.manual_seed(0)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, box, label = torch.randn(16, 8), torch.randn(16, 4), torch.randint(0, 3, (16,))
history = []
for _ in range(8):
    loss = losses(model, x, box, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
