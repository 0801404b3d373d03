# expect: GI601
# advice: At sum_of_a_softmax.py:14, compare with a target instead, by a loss that takes the input of the softmax,
# advice: such as cross_entropy.
# lines: backward=18 zeroed=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x, y = torch.randn(32, 4), torch.randint(3, (32,))
losses = []
for _ in range(30):
    p = torch.softmax(model(x), 1)
    loss = -p.mean()  # -
    loss = nn.functional.cross_entropy(model(x), y)  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
