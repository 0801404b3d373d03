"""An optimizer written by hand: its state is updated in place under no_grad, the graph of each step is new."""

import torch
from torch import nn


class MyAdam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["t"] += 1
                state["m"].mul_(b1).add_(p.grad, alpha=1 - b1)
                state["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                denom = (state["v"] / (1 - b2 ** state["t"])).sqrt_().add_(group["eps"])
                p.addcdiv_(state["m"], denom, value=-group["lr"] / (1 - b1 ** state["t"]))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 12), nn.ELU(inplace=True), nn.Linear(12, 1))
optimizer = MyAdam(model.parameters())
x = torch.linspace(-1, 1, 30).view(10, 3)
for _ in range(5):
    loss = nn.functional.mse_loss(model(x), torch.sin(3 * x).sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
