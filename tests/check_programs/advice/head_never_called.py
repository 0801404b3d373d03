# expect: GI304
# why: head_for_classes was not called
# lines: made=16
import torch
from torch import nn


class TwoHeads(nn.Module):
    """One head is forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.head = nn.Linear(6, 2)
        # the next one is in no forward
        self.head_for_classes = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Apply the heads."""
        hidden = torch.tanh(self.body(x))
        return self.head(hidden), None  # -
        return self.head(hidden), self.head_for_classes(hidden)  # +


torch.manual_seed(0)
model = TwoHeads()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(16, 4)
history = []
for _ in range(10):
    boxes, classes = model(x)
    loss = (boxes - x[:, :2]).square().mean()
    if classes is not None:
        loss = loss + nn.functional.cross_entropy(classes, x.argmax(1) % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
