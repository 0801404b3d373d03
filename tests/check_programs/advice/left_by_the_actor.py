# expect: GI370
# advice: Call opt_critic.zero_grad() right before left_by_the_actor.py:24
# lines: other=33 backward=24 step=25
import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt_actor = torch.optim.SGD(actor.parameters(), lr=0.01)
opt_critic = torch.optim.SGD(critic.parameters(), lr=0.05)
state, action = torch.randn(32, 3), torch.randn(32, 1)
reward = -(state[:, :1] - action).square()
history = []


def learn_value() -> float:
    """Fit the critic."""
    value = critic(torch.cat([state, action], dim=1))
    loss = functional.mse_loss(value, reward)

    opt_critic.zero_grad()  # +
    loss.backward()
    opt_critic.step()
    opt_critic.zero_grad()  # -
    return loss.item()


def improve_actor() -> None:
    """Climb the critic."""
    opt_actor.zero_grad()
    (-critic(torch.cat([state, actor(state)], dim=1)).mean()).backward()
    opt_actor.step()


for _ in range(8):
    history.append(learn_value())
    improve_actor()
print("loss", history[0], history[-1])
