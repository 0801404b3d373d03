# expect: GI601
# advice: At softmax_between_layers.py:15, for one value between 0 and 1, use sigmoid, or pass the scores to
# advice: binary_cross_entropy_with_logits if that is the loss. For classes, let the layer before it return one column
# advice: per class: two for yes or no.
# lines: backward=17 zeroed=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 1), nn.Softmax(dim=1), nn.Linear(1, 1))  # -
model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid(), nn.Linear(1, 1))  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x, losses = torch.randn(64, 4), []
for _ in range(30):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
