# expect: GI301
# advice: p + ((p > 0.5).float() - p).detach()
# never: argmax
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.02)
x, y = torch.randn(16, 3), torch.randn(16, 1)
losses = []
for _ in range(30):
    p = torch.sigmoid(encoder(x))
    code = (p > 0.5).float()  # -
    code = p + ((p > 0.5).float() - p).detach()  # +
    loss = (decoder(code) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
