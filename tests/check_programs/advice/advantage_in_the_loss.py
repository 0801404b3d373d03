# expect: GI358
# why: computed at advantage_in_the_loss.py:24 and has a graph
# advice: At advantage_in_the_loss.py:24, call detach() on the factor that advantage_in_the_loss.py:24 computes: only
# lines: computed=24 used=24 backward=29
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
trunk, policy, critic = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)
parameters = [*trunk.parameters(), *policy.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.02)
losses = []
for _ in range(30):
    log_probs, values, rewards = [], [], []
    for state in torch.randn(16, 4):
        hidden = torch.tanh(trunk(state))
        actions = Categorical(logits=policy(hidden))
        action = actions.sample()
        log_probs.append(actions.log_prob(action))
        values.append(critic(hidden).squeeze())
        rewards.append(2.0 + float(action == 1))
    returns = torch.tensor(rewards)
    actor_loss = -(torch.stack(log_probs) * (returns - torch.stack(values))).mean()  # -
    actor_loss = -(torch.stack(log_probs) * (returns - torch.stack(values)).detach()).mean()  # +
    critic_loss = nn.functional.smooth_l1_loss(torch.stack(values), returns)
    loss = actor_loss + critic_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(critic_loss.item())
print("loss", losses[0], losses[-1])
