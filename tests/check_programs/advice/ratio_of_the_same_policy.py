# expect: GI603
# why: ratio_of_the_same_policy.py:31 compares one result with the other. All elements were equal in each of
# advice: compute it before they change, under torch.no_grad(), and keep it with the data
# lines: new=29 old=30 compared=31
import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))

    def score(self, states, actions):
        return Categorical(logits=self.body(states)).log_prob(actions)


torch.manual_seed(0)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
states, actions = torch.randn(64, 4), torch.arange(64) % 3
gains, history = (actions == states[:, :3].argmax(1)).float() - 0.3, []
with torch.no_grad():  # +
    kept = policy.score(states, actions)  # +

for _ in range(6):
    for rows in torch.arange(64).split(32):
        new = policy.score(states[rows], actions[rows])
        old = policy.score(states[rows], actions[rows])  # -
        ratio = (new - old).exp()  # -
        ratio = (new - kept[rows]).exp()  # +
        loss = -torch.min(ratio * gains[rows], ratio.clamp(0.8, 1.2) * gains[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
print("loss", sum(history[:2]), sum(history[-2:]))
