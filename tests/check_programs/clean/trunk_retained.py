"""Two heads on one trunk: the first backward keeps the graph, the second frees it, and the step comes after both."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 8), nn.Tanh())
        self.age, self.group = nn.Linear(8, 1), nn.Linear(8, 3)

    def forward(self, x):
        shared = self.trunk(x)
        return self.age(shared).squeeze(-1), self.group(shared)


model = MultiTask()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
weights = model.trunk[2].weight
for _ in range(3):
    x, age, group = torch.randn(10, 6), torch.rand(10), torch.randint(0, 3, (10,))
    age_hat, logits = model(x)
    regression, classification = F.mse_loss(age_hat, age), F.cross_entropy(logits, group)
    optimizer.zero_grad()
    regression.backward(retain_graph=True)
    from_age = weights.grad.norm().item()
    classification.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(regression.item().hex(), classification.item().hex(), from_age.hex())
