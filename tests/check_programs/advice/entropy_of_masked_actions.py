# expect: GI502
# advice: mask with torch.finfo(x.dtype).min instead of -inf. Use log_softmax()
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(6, 4)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
obs = torch.randn(16, 6)
legal = torch.rand(16, 4) > 0.4
legal[:, 0] = True
advantage = torch.randn(16)
action = torch.zeros(16, dtype=torch.long)
losses = []
for _ in range(20):
    logits = policy(obs).masked_fill(~legal, float("-inf"))  # -
    logits = policy(obs).masked_fill(~legal, torch.finfo(obs.dtype).min)  # +
    probs = torch.softmax(logits, dim=-1)
    logp = torch.log(probs)  # -
    logp = torch.log_softmax(logits, dim=-1)  # +
    entropy = -(probs * logp).sum(-1).mean()
    pg = -(logp.gather(1, action[:, None]).squeeze(1) * advantage).mean()
    loss = pg - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
