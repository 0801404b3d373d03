"""Pretrained words stay as they are, in an optimizer that has groups for another reason; a dummy drives a schedule."""

import torch
from torch import nn

torch.manual_seed(0)
words = nn.Embedding.from_pretrained(torch.randn(50, 8))
model = nn.Sequential(words, nn.Flatten(), nn.Linear(40, 3))
decayed = [one for one in model.parameters() if one.ndim > 1]
others = [one for one in model.parameters() if one.ndim == 1]
optimizer = torch.optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}], lr=0.01)
dummy = torch.optim.SGD([torch.zeros(1)], lr=1.0)
schedule = torch.optim.lr_scheduler.StepLR(dummy, 2)
for _ in range(6):
    loss = nn.functional.cross_entropy(model(torch.randint(50, (16, 5))), torch.randint(3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    for group in optimizer.param_groups:
        group["lr"] = 0.01 * schedule.get_last_lr()[0]
    optimizer.step()
    dummy.step()
    schedule.step()
    print(loss.item().hex())
