# expect: GI306
# why: What penalty_of_numbers.py:19 adds to the loss has no graph: item() converts the value to Python or NumPy
# advice: Keep the tensor at penalty_of_numbers.py:17, and use torch functions only from there on.
# lines: detached=17 used=19 backward=21
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(64, 8), torch.randint(3, (64,))
losses = []
for _ in range(20):
    penalty = 0.0
    for name, parameter in model.named_parameters():
        if name.endswith("weight"):
            penalty += parameter.abs().sum().item()  # -
            penalty = penalty + parameter.abs().sum()  # +
    loss = nn.functional.cross_entropy(model(x), y) + 1e-3 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
