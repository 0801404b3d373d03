# expect: GI802
# advice: keep the handle that it returns, and call handle.remove() after backward
# lines: hooked=18 backward=22
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer, losses, shapes = torch.optim.SGD(model.parameters(), lr=0.05), [], []
x = torch.randn(32, 3)


def note(module, inputs, output):
    shapes.append(output.shape)


for _ in range(30):
    model[1].register_forward_hook(note)  # -
    handle = model[1].register_forward_hook(note)  # +
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    handle.remove()  # +
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
