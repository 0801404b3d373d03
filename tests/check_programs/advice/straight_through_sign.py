# expect: GI601
# advice: x + (x.sign() - x).detach()
# never: round
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.02)
x, y = torch.randn(16, 3), torch.randn(16, 1)
losses = []
for _ in range(30):
    h = encoder(x)
    code = h.sign()  # -
    code = h + (h.sign() - h).detach()  # +
    loss = (decoder(code) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
