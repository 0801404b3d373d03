# expect: GI101
# advice: attention = attention.masked_fill(lengths > 2, 0.0)
# never: torch.stack
import torch
from torch import nn

torch.manual_seed(0)
scorer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(scorer.parameters(), lr=0.05)
x, y, lengths = torch.randn(8, 3), torch.rand(8, 4), torch.arange(4).repeat(8, 1)
losses = []
for _ in range(30):
    attention = torch.sigmoid(scorer(x))
    attention[lengths > 2] = 0.0  # -
    attention = attention.masked_fill(lengths > 2, 0.0)  # +
    loss = (attention - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
