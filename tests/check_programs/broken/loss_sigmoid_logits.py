"""A binary classifier whose sigmoid is in a helper, trained with the loss that has one."""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, batch_first=True)
        self.out = nn.Linear(8, 1)

    def head(self, h):
        return torch.sigmoid(self.out(h))

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.head(h[-1]).squeeze(1)


torch.manual_seed(0)
scorer = Scorer()
optimizer = torch.optim.RMSprop(scorer.parameters())
for _ in range(2):
    x, y = torch.randn(4, 5, 6), torch.tensor([0.0, 1.0, 1.0, 0.0])
    optimizer.zero_grad()
    p = scorer(x)
    loss = binary_cross_entropy_with_logits(p, y, pos_weight=torch.tensor(2.0))
    loss.backward()
    optimizer.step()
# expect: GI351 applied=15 loss=29 backward=30
