"""PPO: old log-probabilities and advantages are taken once under no_grad and reused by every minibatch."""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
log_std = nn.Parameter(torch.zeros(2))
critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam([*actor.parameters(), log_std, *critic.parameters()], lr=3e-3)

obs = torch.randn(32, 3)
with torch.no_grad():
    dist = Normal(actor(obs), log_std.exp())
    actions = dist.sample()
    old_log_prob = dist.log_prob(actions).sum(-1)
    returns = -(actions - obs[:, :2]).pow(2).sum(-1)
    advantages = returns - critic(obs).squeeze(-1)

for _ in range(2):
    for idx in torch.randperm(32).split(8):
        dist = Normal(actor(obs[idx]), log_std.exp())
        ratio = (dist.log_prob(actions[idx]).sum(-1) - old_log_prob[idx]).exp()
        adv = advantages[idx]
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        surrogate = torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
        value_loss = nn.functional.mse_loss(critic(obs[idx]).squeeze(-1), returns[idx])
        loss = -surrogate.mean() + 0.5 * value_loss - 0.01 * dist.entropy().sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
        optimizer.step()
        print(loss.item().hex())
