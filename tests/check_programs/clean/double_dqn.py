"""Double DQN: the online net picks the next action under no_grad, the target net rates it; both are constants."""

import copy
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

random.seed(0)
torch.manual_seed(0)
online = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4))
target = copy.deepcopy(online)
optimizer = torch.optim.RMSprop(online.parameters(), lr=1e-3)
memory = deque(maxlen=100)
state = torch.randn(3)
for t in range(32):
    with torch.no_grad():
        action = random.randrange(4) if random.random() < 0.5 else online(state).argmax().item()
    following = torch.randn(3)
    memory.append((state, action, following.sum().item(), following, float(t % 10 == 9)))
    state = following
    if t >= 28:
        s, a, r, s2, done = zip(*random.sample(memory, 16), strict=True)
        s, s2, a, r, done = torch.stack(s), torch.stack(s2), torch.tensor(a), torch.tensor(r), torch.tensor(done)
        with torch.no_grad():
            best = online(s2).argmax(1, keepdim=True)
            y = r + 0.99 * (1 - done) * target(s2).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(online(s).gather(1, a[:, None]).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 10.0)
        optimizer.step()
        print(loss.item().hex())
