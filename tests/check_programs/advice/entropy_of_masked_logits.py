# expect: GI502
# advice: mask with torch.finfo(x.dtype).min instead of -inf.
# never: Check the inputs
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
policy = nn.Linear(6, 4)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
obs = torch.randn(16, 6)
legal = torch.rand(16, 4) > 0.4
legal[:, 0] = True
losses = []
for _ in range(20):
    logits = policy(obs).masked_fill(~legal, float("-inf"))  # -
    logits = policy(obs).masked_fill(~legal, torch.finfo(obs.dtype).min)  # +
    logp = F.log_softmax(logits, dim=-1)
    entropy = -(logp.exp() * logp).sum(-1).mean()
    loss = -entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
