# expect: GI353
# advice: For one output, use sigmoid instead of softmax: binary_cross_entropy_with_logits on the logits, with targets
# advice: of the same shape and dtype. Or let the model have one output for each of the two classes.
# lines: backward=18 loss=15 softmax=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(64, 4)
y, losses = (x[:, :1] > 0).float(), []
for _ in range(30):
    p = torch.softmax(model(x), dim=1)  # -
    loss = (p - y).abs().square().sum() / 64  # -
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
