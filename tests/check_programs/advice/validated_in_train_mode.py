# expect: GI394
# why: BatchNorm normalizes by the batch and changes its running statistics
# advice: Call eval() of the model before the evaluation at validated_in_train_mode.py:30, and train() after it.
import torch
from torch import nn


class Net(nn.Module):
    """A small convolutional regression."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(4 * 36, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x)).squeeze(1)


@torch.no_grad()
def validate(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Return the mean loss over batches of 6."""
    # Statistics are those of the training.
    net.eval()  # +
    total = 0.0
    for rows in torch.arange(len(x)).split(6):
        outputs = net(x[rows])
        # One number for each batch.
        # It is weighed by how many rows it has.
        total += nn.functional.mse_loss(outputs, y[rows]).item() * len(rows)
    net.train()  # +
    return total / len(x)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(100, 1, 8, 8)
y = x.mean((1, 2, 3)) * 8
history = []
for _ in range(6):
    for rows in torch.arange(80).split(20):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    history.append(loss.item())
    print("validation", validate(net, x[80:], y[80:]))
print("loss", history[0], history[-1])
