# expect: GI001
# advice: This optimizer computes the loss several times: pass a function that clears gradients, calls backward() and
# advice: returns the loss.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1)


def closure() -> torch.Tensor:
    """Compute the loss and its gradients."""
    optimizer.zero_grad()
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    return loss


history = []
for _ in range(10):
    history.append(closure().item())  # -
    optimizer.step()  # -
    history.append(optimizer.step(closure).item())  # +
print("loss", history[0], history[-1])
