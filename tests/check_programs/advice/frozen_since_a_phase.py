# expect: GI379
# why: learned until frozen_since_a_phase.py:35, which set requires_grad to False
# advice: before the forward pass that the step of of_critic at frozen_since_a_phase.py:33 belongs to
# lines: frozen=35 optimizer=20 step=33
import torch
from torch import nn


def freeze(model: nn.Module, *, is_on: bool) -> None:
    """Switch all of a model."""
    for param in model.parameters():
        param.requires_grad = is_on


torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
critic = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
of_actor = torch.optim.Adam(actor.parameters(), lr=0.02)

of_critic = torch.optim.Adam(critic.parameters(), lr=0.02)
state = torch.randn(32, 4)
reward = state.sum(1, keepdim=True)
history = []
for _ in range(10):
    freeze(critic, is_on=True)  # +

    loss = (critic(torch.cat([state, actor(state)], 1)) - reward).square().mean()
    if not history:
        history.append(loss.item())
    of_critic.zero_grad()

    loss.backward()
    of_critic.step()

    critic.requires_grad_(False)
    policy_loss = -critic(torch.cat([state, actor(state)], 1)).mean()
    of_actor.zero_grad()
    policy_loss.backward()
    of_actor.step()
history.append(loss.item())
print("loss", history[0], history[-1])
