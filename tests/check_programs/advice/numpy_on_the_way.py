# expect: GI301
# advice: use torch functions only from there on, and h itself instead of torch.from_numpy()
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 6), nn.Linear(6, 2)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
x, y = torch.randn(16, 4), torch.randn(16, 2)
losses = []
for _ in range(20):
    h = encoder(x)
    h = h.detach().numpy()  # -
    h = (h - h.mean(0)) / (h.std(0) + 1e-5)  # -
    h = (h - h.mean(0)) / (h.std(0, correction=0) + 1e-5)  # +
    loss = (head(torch.from_numpy(h)) - y).square().mean()  # -
    loss = (head(h) - y).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
