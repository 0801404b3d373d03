"""Q-learning with the best value of a copy that no optimizer holds: it has gradients, which nothing follows."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
online, delayed = (nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)) for _ in range(2))
delayed.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=0.01)
state, following = torch.randn(64, 4), torch.randn(64, 4)
action, reward, goes_on = torch.randint(2, (64, 1)), torch.rand(64, 1), (torch.rand(64, 1) < 0.9).float()
for step in range(12):
    best = delayed(following).max(1)[0].unsqueeze(1)
    target = reward + 0.98 * best * goes_on
    loss = F.smooth_l1_loss(online(state).gather(1, action), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        delayed.load_state_dict(online.state_dict())
    print(loss.item().hex())
