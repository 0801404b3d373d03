# expect: GI307
# expect: GI503
# why: the call has no effect, and what follows reads the tensor as it was.
# advice: Assign the result at cast_dropped.py:19: x = x.clamp(0.0, 1.0)
# lines: called=19
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
w = torch.randn(6, 1)
data = torch.rand(64, 6)
data[::7] *= 40
history = []
for _ in range(30):
    x = data.clone()

    x.clamp(0.0, 1.0)  # -
    x = x.clamp(0.0, 1.0)  # +
    loss = (model(x) - data.clamp(0.0, 1.0) @ w).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(min(loss.item(), 1e9))
print("loss", history[0], history[-1])
