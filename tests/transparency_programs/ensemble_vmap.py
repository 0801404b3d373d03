import copy

import fingerprint
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(15)
models = [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)) for _ in range(5)]
params, buffers = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta")
optimizer = torch.optim.Adam(params.values(), lr=0.01)


def call(p, b, x):
    return functional_call(base, (p, b), (x,))


for step in range(4):
    out = vmap(call, in_dims=(0, 0, None))(params, buffers, torch.randn(6, 4))
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.9f}")
fingerprint.show(*params.values())
