# expect: GI501
# advice: At angle_of_vectors.py:17, clamp its input with a margin: x.clamp(-1 + 1e-6, 1 - 1e-6), not to -1 and 1
# advice: themselves.
# lines: backward=20 made=17
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(2, 2, bias=False)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
y = torch.tensor([[0.0, 1.0], [0.0, 1.0], [-0.8, 0.6]])
nn.init.eye_(layer.weight)
losses = []
for _ in range(30):
    cosine = nn.functional.cosine_similarity(layer(x), y)
    loss = torch.acos(cosine.clamp(-1, 1)).mean()  # -
    loss = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6)).mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
