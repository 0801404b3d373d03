# expect: GI388
# why: the state 'velocity' of optimizer was the tensor in .grad itself
# advice: Keep a copy at momentum_without_a_copy.py:19: state['velocity'] = p.grad.clone()
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
            if "velocity" not in state:
                state["velocity"] = p.grad  # -
                state["velocity"] = p.grad.clone()  # +
            else:
                state["velocity"].mul_(0.9).add_(p.grad)
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
