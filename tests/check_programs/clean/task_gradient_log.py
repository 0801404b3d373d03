"""Two tasks weighted by learned uncertainty; autograd.grad with retain_graph only logs each task's gradient norm."""

import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(4, 16), nn.ReLU())
regress, classify = nn.Linear(16, 1), nn.Linear(16, 3)
log_vars = nn.Parameter(torch.zeros(2))
optimizer = torch.optim.Adam([*trunk.parameters(), *regress.parameters(), *classify.parameters(), log_vars], lr=1e-2)
history = []
for _ in range(3):
    x = torch.randn(12, 4)
    amount, kind = x.sum(1, keepdim=True), torch.randint(3, (12,))
    shared = trunk(x)
    losses = torch.stack(
        [nn.functional.mse_loss(regress(shared), amount), nn.functional.cross_entropy(classify(shared), kind)]
    )
    norms = [torch.autograd.grad(task, trunk[0].weight, retain_graph=True)[0].norm().item() for task in losses]
    total = (losses * (-log_vars).exp() + log_vars).sum()
    optimizer.zero_grad()
    total.backward()
    grads = {name: p.grad.detach().clone() for name, p in trunk.named_parameters()}
    optimizer.step()
    history.append(losses.detach())
    print(total.item().hex(), *(n.hex() for n in norms), grads["0.bias"].norm().item().hex())
print(torch.stack(history).mean(0).tolist())
