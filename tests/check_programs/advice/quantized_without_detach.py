# expect: GI601
# why: z is added and subtracted again, so it cancels: its gradient is zero, whatever the loss is.
# advice: detach the difference at quantized_without_detach.py:19: z + (q - z).detach(). What q is computed from then
# lines: zeroed=19 backward=25
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
codes = nn.Parameter(torch.randn(16, 4))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), codes], lr=0.02)
x = torch.randn(64, 8)
history = []
for _ in range(30):
    z = encoder(x)
    nearest = torch.cdist(z.detach(), codes.detach()).argmin(1)
    q = codes[nearest]
    commitment = (z - q.detach()).square().mean()
    quantized = z + (q - z)  # -
    quantized = z + (q - z).detach()  # +
    loss = (decoder(quantized) - x).square().mean() + 0.25 * commitment
    loss = loss + (q - z.detach()).square().mean()  # +
    history.append((decoder(q) - x).square().mean().item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
