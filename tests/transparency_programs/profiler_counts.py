from collections import Counter

import fingerprint
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

torch.manual_seed(8)
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step():
    with record_function("forward"):
        loss = nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.tensor([0, 1, 1, 0]))
    with record_function("backward"):
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in range(3):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        step()
    counts = Counter(event.name for event in profiled.events())
    print(len(profiled.events()), sorted(counts.items()))
with torch.autograd.profiler.profile() as old:
    step()
print(sorted(Counter(event.name for event in old.function_events).items()))
fingerprint.show(model)
