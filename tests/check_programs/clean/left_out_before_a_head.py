"""Parts that stay as they are because no optimizer gets them: a backbone before a new head, all but a prompt."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)


class Prompted(nn.Module):
    """A prompt before a body."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = nn.Parameter(torch.randn(1, 8))
        self.body = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shift each input."""
        return self.body(x + self.prompt)


class Classifier(nn.Module):
    """A backbone with a head."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify."""
        return self.head(self.backbone(x))


prompted, classifier = Prompted(), Classifier()
for model, learned in ((prompted, [prompted.prompt]), (classifier, [*classifier.head.parameters()])):
    optimizer = torch.optim.Adam(learned, lr=0.01)
    for _ in range(4):
        loss = functional.cross_entropy(model(torch.randn(16, 8)), torch.randint(2, (16,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.5f}")
