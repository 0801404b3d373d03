"""The profiler's events, and the operators that a dispatch mode of the program counts, of training steps."""

from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode


class Count(TorchDispatchMode):
    """Counts operators."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        counts[str(func)] += 1
        return func(*args, **(kwargs or {}))


torch.manual_seed(0)
counts = Counter()
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())
data = torch.randn(8, 4)


def step():
    """Train once."""
    optimizer.zero_grad()
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()


step()
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    step()
print(sorted((event.key, event.count) for event in profiled.key_averages() if "rofiler" not in event.key))
with Count():
    step()
print(sorted(counts.items()))
with FlopCounterMode(display=False) as flops:
    step()
print(flops.get_total_flops())
