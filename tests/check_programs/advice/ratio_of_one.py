# expect: GI601
# why: Both of its inputs are the same tensor
# advice: At ratio_of_one.py:15, detach() the side that is to stay as it was
# lines: zeroed=15 backward=20
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(4, 2)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.5)
state, action, advantage = torch.randn(32, 4), torch.randint(2, (32,)), torch.randn(32)
history = []
for _ in range(6):
    new = torch.distributions.Categorical(logits=policy(state)).log_prob(action)
    ratio = (new - new).exp()  # -
    ratio = (new - new.detach()).exp()  # +
    loss = -(ratio * advantage).mean()

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(-(new.detach() * advantage).mean().item())
print("loss", history[0], history[-1])
