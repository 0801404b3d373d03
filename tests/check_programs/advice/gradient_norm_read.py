# expect: GI402
# advice: torch.autograd.grad(
# advice: create_graph=True
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(16, 3), torch.randn(16, 1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward(retain_graph=True)  # -
    norm = sum(p.grad.norm() for p in model.parameters())  # -
    grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)  # +
    norm = sum(grad.norm() for grad in grads)  # +
    total = loss + 0.01 * norm
    total.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
