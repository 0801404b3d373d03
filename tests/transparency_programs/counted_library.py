"""Counters stand in torch before the library is imported; each block prints what it counted beside the step itself."""

import call_counters
import torch
from torch import nn

call_counters.start()

import gradinspect as gi  # noqa: E402  # the counters must stand before it

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
inputs, targets = torch.randn(5, 4), torch.randint(0, 3, (5,))
num_steps = 0


def step():
    global num_steps
    num_steps += 1
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), targets) + model[0].weight.pow(2).mean()
    loss.backward()
    optimizer.step()


def recorded():
    with gi.record():
        step()


for _ in range(2):  # the state of the optimizer is made in the first
    call_counters.counts.clear()
    step()
alone = dict(call_counters.counts)
for name, run in {"record": recorded, "check": lambda: gi.check(step), "fit": lambda: gi.fit(step)}.items():
    num_steps = 0
    call_counters.counts.clear()
    run()
    counted = call_counters.counts
    ours = {key: counted[key] - num_steps * alone.get(key, 0) for key in {*counted, *alone}}
    print(name, num_steps > 0, {key: number for key, number in ours.items() if number})
call_counters.counts.clear()
gi.capture(model(inputs).sum())
print("capture", call_counters.counts["Tensor.untyped_storage"], call_counters.counts["Tensor.numel"])
