# expect: GI305
# advice: Call batch.retain_grad() before backward, or read the .grad of image.
# never: Make batch a leaf
# lines: backward=18 made=14 read=19
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
image, y = torch.randn(3, requires_grad=True), torch.ones(1, 1)
losses = []
for _ in range(20):
    batch = image.unsqueeze(0)
    batch.retain_grad()  # +
    loss = (model(batch) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    saliency = batch.grad
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
