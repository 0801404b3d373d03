"""Fused AdamW and accumulation with a last short window: each loss divided by its window, stepped at the end too."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.Hardswish(inplace=True), nn.Linear(16, 4))
decay = [p for p in model.parameters() if p.dim() > 1]
no_decay = [p for p in model.parameters() if p.dim() <= 1]
groups = [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-2, fused=True)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 3))
batches = [(torch.randn(4, 5), torch.randint(4, (4,))) for _ in range(5)]
every = 2
for epoch in range(2):
    model.train()
    running = 0.0
    for i, (x, y) in enumerate(batches):
        window = min(every, len(batches) - i // every * every)
        loss = nn.functional.cross_entropy(model(x), y) / window
        loss.backward()
        running += loss.item() * window
        if (i + 1) % every == 0 or i + 1 == len(batches):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
            optimizer.step()
            warmup.step()
            optimizer.zero_grad(set_to_none=False)
    print(epoch, (running / len(batches)).hex())
