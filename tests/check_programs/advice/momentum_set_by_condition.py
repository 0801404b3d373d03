# expect: GI388
# why: the state 'velocity' of optimizer was the tensor in .grad itself
# advice: Keep a copy at momentum_set_by_condition.py:19: call clone() on the gradient that becomes 'velocity'
# lines: kept=19
import torch
from torch import nn


class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self) -> None:
        """Step along a running sum of gradients."""
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            known = state.get("velocity")
            state["velocity"] = p.grad if known is None else known.mul_(0.9).add_(p.grad)  # -
            state["velocity"] = p.grad.clone() if known is None else known.mul_(0.9).add_(p.grad)  # +
            p.sub_(state["velocity"], alpha=self.param_groups[0]["lr"])


torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = Momentum(model.parameters(), lr=0.02)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
history = []
for _ in range(8):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
