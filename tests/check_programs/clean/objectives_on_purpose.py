"""Responsibilities, targets, noise, codes and initializations that look like mistakes and are none."""

import torch
from torch import nn
from torch.distributions import Categorical, Normal
from torch.nn.functional import mse_loss, smooth_l1_loss

torch.manual_seed(0)
x = torch.randn(64, 8)

# a mixture: the weights of log-probabilities have a graph, and are no advantage
gate, means = nn.Linear(8, 3), nn.Parameter(torch.randn(3, 8))
optimizer = torch.optim.Adam([*gate.parameters(), means], lr=0.01)
for _ in range(4):
    weights = torch.softmax(gate(x), 1)
    log_probs = Normal(means, 1.0).log_prob(x[:, None]).sum(2)
    loss = -(weights * log_probs).sum(1).mean() + 1.0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# an actor and a critic, each with its own loss, whose baseline is a number
actor, critic, follower = nn.Linear(8, 2), nn.Linear(8, 2), nn.Linear(8, 2)
follower.load_state_dict(critic.state_dict())
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=0.01)
for _ in range(4):
    policy = Categorical(logits=actor(x))
    action = policy.sample()
    with torch.no_grad():
        target = x[:, 0] + 0.9 * follower(x + 0.1).max(1).values
    value = critic(x).gather(1, action[:, None]).squeeze(1)
    advantage = target - value
    mean = advantage.mean().item()
    actor_loss = -(policy.log_prob(action) * (advantage.detach() - mean)).mean()
    loss = actor_loss + smooth_l1_loss(value, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# a denoiser of augmented data, and a codebook with a straight-through estimator
model, encoder, decoder, codebook = nn.Linear(9, 8), nn.Linear(8, 4), nn.Linear(4, 8), nn.Embedding(16, 4)
nn.init.normal_(codebook.weight)
optimizer = torch.optim.Adam(
    [part for one in (model, encoder, decoder, codebook) for part in one.parameters()], lr=0.01
)
for _ in range(4):
    level, noise = torch.rand(64, 1), torch.randn(64, 8)
    clean = x + 0.01 * torch.randn_like(x)
    noisy = level.sqrt() * clean + (1 - level).sqrt() * noise
    z = encoder(x)
    q = codebook(torch.cdist(z, codebook.weight).argmin(1))
    quantized = mse_loss(decoder(z + (q - z).detach()), x) + mse_loss(q, z.detach()) + 0.25 * mse_loss(z, q.detach())
    loss = mse_loss(model(torch.cat((noisy, level), 1)), noise) + quantized
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# a checkpoint whose head is made anew, and a padding row that is set to zero again
words = nn.Sequential(nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 8), nn.Linear(8, 2))
for parameter in words.parameters():
    nn.init.normal_(parameter, std=0.1)
words.load_state_dict({name: value + 0.01 for name, value in words.state_dict().items()})
with torch.no_grad():
    words[0].weight[0] = 0
nn.init.zeros_(words[2].bias)
nn.init.xavier_uniform_(words[2].weight)
optimizer = torch.optim.SGD(words.parameters(), lr=0.1)
for _ in range(4):
    loss = words(torch.randint(20, (32,))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
