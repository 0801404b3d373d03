# expect: GI311
# why: reaches nothing that actor_opt updates
# advice: Enable gradients at critic_scores_stored_actions.py:19
# lines: detached=19
import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2), nn.Tanh())
critic = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
actor_opt = torch.optim.Adam(actor.parameters(), lr=0.002)
critic_opt = torch.optim.Adam(critic.parameters(), lr=0.02)
history = []


def chosen(state):
    state = state.float()
    with torch.no_grad():  # -
        return actor(state)  # -
    return actor(state)  # +


for _ in range(400):
    state, action = torch.randn(64, 3), torch.rand(64, 2) * 2 - 1
    reward = -(action - 0.5).square().sum(1, keepdim=True)
    critic_loss = (critic(torch.cat([state, action], 1)) - reward).square().mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    value = critic(torch.cat([state, chosen(state)], 1)).mean()
    small = 0.001 * actor(state).square().mean()
    actor_opt.zero_grad()
    (small - value).backward()
    actor_opt.step()
    history.append(float((actor(state).detach() - 0.5).square().mean()))
print("loss", history[0], history[-1])
