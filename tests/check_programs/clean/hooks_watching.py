"""Hooks for Grad-CAM, clipping and statistics: what they keep is detached, and they are taken away at the end."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(96, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
seen, averages = {}, {"loss": 0.0}


def remember(_module, _args, output):
    seen["map"] = output.detach()
    output.register_hook(lambda g: seen.update(gradient=g.detach()))


def watch(_module, _grad_input, grad_output):
    seen["head"] = grad_output[0].norm().item()


handles = [net[2].register_forward_hook(remember), net[5].register_full_backward_hook(watch)]
handles += [p.register_hook(lambda g: g.clamp(-0.1, 0.1)) for p in net.parameters()]
for _ in range(3):
    loss = nn.functional.cross_entropy(net(torch.randn(5, 1, 8, 8)), torch.randint(0, 3, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    averages["loss"] = 0.9 * averages["loss"] + 0.1 * loss.item()
    cam = (seen["map"] * seen["gradient"].mean((2, 3), keepdim=True)).sum(1).relu()
    print(averages["loss"].hex(), seen["head"].hex(), cam.mean().item().hex())
for handle in handles:
    handle.remove()
