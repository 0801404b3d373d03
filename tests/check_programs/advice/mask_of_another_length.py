# expect: GI001
# advice: Make the mask from the length of this input: it should be (6, 6).
import torch
from torch import nn

torch.manual_seed(0)
attention = nn.MultiheadAttention(8, 2, batch_first=True)
x = torch.randn(4, 6, 8)
mask = torch.ones(4, 4, dtype=torch.bool).triu(1)  # -
mask = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)  # +
optimizer = torch.optim.Adam(attention.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (attention(x, x, x, attn_mask=mask)[0] - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
