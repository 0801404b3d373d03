# expect: GI001
# advice: Choose an embed_dim that is a multiple of num_heads.
import torch
from torch import nn

torch.manual_seed(0)
width = 10  # -
width = 12  # +
attention = nn.MultiheadAttention(embed_dim=width, num_heads=4, batch_first=True)
x = torch.randn(8, 6, width)
optimizer = torch.optim.Adam(attention.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (attention(x, x, x)[0] - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
