# expect: GI305
# advice: append .detach().requires_grad_()
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
model.requires_grad_(False)


def attack(x, y, steps):
    x = x.clone().requires_grad_(True)
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        losses.append(loss.item())
        x = (x + 0.1 * x.grad.sign()).clamp(0, 1)  # -
        x = (x - 0.1 * x.grad.sign()).clamp(0, 1).detach().requires_grad_()  # +
    return losses


losses = attack(torch.rand(1, 3, 8, 8), torch.tensor([1]), 10)
print("loss", losses[0], losses[-1])
