"""Classes on the last axis, moved to axis 1 for the loss; CTC; one step of attention; a mixture of Gaussians."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
rnn, out, mix = nn.GRU(5, 6, batch_first=True), nn.Linear(6, 4), nn.Linear(6, 3)
segment = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.LogSoftmax(dim=1))
optimizer = torch.optim.Adam([*rnn.parameters(), *out.parameters(), *mix.parameters(), *segment.parameters()])
for _ in range(3):
    hidden, _ = rnn(torch.randn(2, 9, 5))
    log_p = F.log_softmax(out(hidden), dim=2)
    tags = torch.randint(1, 4, (2, 9))
    loss = F.nll_loss(log_p.permute(0, 2, 1), tags) + F.nll_loss(log_p.view(-1, 4), tags.view(-1))
    lengths = torch.full((2,), 9), torch.full((2,), 3)
    loss = loss + F.ctc_loss(log_p.transpose(0, 1), tags[:, :3], *lengths, zero_infinity=True)
    loss = loss + F.nll_loss(segment(torch.randn(2, 2, 4, 4)), torch.randint(3, (2, 4, 4)))
    attention = F.softmax(hidden[:, -1:] @ hidden[:, :1].transpose(1, 2), dim=-1)
    loss = loss + (attention @ hidden[:, :1]).square().mean()
    log_weights = F.log_softmax(mix(hidden[:, -1]), dim=-1)
    components = torch.distributions.Normal(torch.arange(3.0), torch.ones(3))
    loss = loss - torch.logsumexp(log_weights + components.log_prob(torch.randn(2, 1)), dim=-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
