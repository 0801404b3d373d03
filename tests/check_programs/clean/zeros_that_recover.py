"""Zeros on purpose: the second factor of LoRA, a residual branch, a gate, and margins that are kept for a while."""
# options: --steps 6

import torch
from torch import nn

torch.manual_seed(0)
base, lora_a, lora_b = nn.Linear(4, 4), nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)
branch, gate = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)), nn.Parameter(torch.zeros(1))
nn.init.zeros_(lora_b.weight)
nn.init.zeros_(branch[2].weight)
head = nn.Linear(4, 1)
nn.init.zeros_(head.weight)
base.requires_grad_(False)
parts = nn.ModuleList([lora_a, lora_b, branch, head])
optimizer = torch.optim.SGD([*parts.parameters(), gate], lr=0.1)
for step in range(6):
    x = torch.randn(16, 4)
    h = base(x) + lora_b(lora_a(x))
    h = h + branch(h) + gate * h
    score = head(h)
    margin = torch.relu(score.abs() - 100).mean()
    weight = 0.0 if step < 3 else 0.1
    loss = (score - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    (loss + weight * h.square().mean()).backward(retain_graph=True)
    margin.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
