"""Fine-tuning with weight norm: BatchNorm is put back in eval mode by train(), its buffers are only read."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Finetuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = weight_norm(nn.Conv1d(2, 6, 3), dim=0)
        self.bn = nn.BatchNorm1d(6).requires_grad_(False)
        self.head = nn.Linear(6, 2)

    def train(self, mode=True):
        super().train(mode)
        self.bn.eval()
        return self

    def forward(self, x):
        h = self.bn(self.conv(x)).relu_()
        return self.head(h.mean(-1))


torch.manual_seed(0)
model = Finetuned()
with torch.no_grad():
    model.bn.running_mean.normal_(0, 0.1)
    model.head.weight.mul_(0.5)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
for _ in range(4):
    model.train()
    loss = nn.functional.cross_entropy(model(torch.randn(8, 2, 10)), torch.randint(2, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
