# expect: GI301
# advice: Remove detach() at policy_log_detached.py:22
# never: multinomial
# lines: detached=22
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
arms = torch.tensor([0.1, 0.9, 0.2])
trunk, actor, critic = nn.Linear(3, 8), nn.Linear(8, 3), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*trunk.parameters(), *actor.parameters(), *critic.parameters()], lr=0.05)
history = []
for _ in range(20):
    logs, values, returns = [], [], []
    for context in torch.eye(3).repeat(4, 1):
        hidden = torch.tanh(trunk(context))
        choice = Categorical(logits=actor(hidden))
        arm = choice.sample()
        values.append(critic(hidden).squeeze())
        returns.append(arms[arm])
        logs.append(choice.log_prob(arm).detach())  # -
        logs.append(choice.log_prob(arm))  # +
    gained, value = torch.stack(returns), torch.stack(values)
    loss = -(torch.stack(logs) * (gained - value.detach())).mean() + nn.functional.mse_loss(value, gained)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(nn.functional.mse_loss(value, gained).item())
print("loss", history[0], history[-1])
