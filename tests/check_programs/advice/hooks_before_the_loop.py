# expect: GI802
# advice: Move hooks_before_the_loop.py:17 before the loop
# lines: hooked=17 backward=20
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), []
x = torch.randn(32, 3)
for p in model[0].parameters():  # +
    p.register_hook(lambda grad: grad * 0.5)  # +
for _ in range(30):
    optimizer.zero_grad()
    # the first layer learns slowly
    for p in model[0].parameters():  # -
        p.register_hook(lambda grad: grad * 0.5)  # -

    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
