# expect: GI380
# why: is exactly zero: what the loss is made of does not depend on them, or its parts cancel.
# advice: Terms that are computed twice from the same parameters cancel: detach the one that is to stay as it was.
# lines: step=27 backward=26
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(6, 3)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
states, actions, gains = torch.randn(48, 6), torch.randint(3, (48, 1)), torch.randn(48)
history = []


def log_prob():
    return policy(states).log_softmax(1).gather(1, actions).squeeze(1)


for _ in range(8):
    old = log_prob() / 1.0  # -
    old = (log_prob() / 1.0).detach()  # +
    ratio = (log_prob() - old).exp()
    loss = -(ratio * gains).mean()
    history.append(-(log_prob() * gains).mean().item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
