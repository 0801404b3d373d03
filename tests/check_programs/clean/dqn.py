"""Deep Q-learning: a target network without no_grad, actions by argmax, rewards as Python numbers."""

import torch
from torch import nn

torch.manual_seed(0)
q, target = (nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)) for _ in range(2))
target.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters())
for step in range(3):
    state, following = torch.randn(6, 4), torch.randn(6, 4)
    action = q(state).argmax(1)
    reward = torch.tensor([float(a.item()) for a in action])
    wanted = reward + 0.9 * target(following).max(1)[0].detach()
    chosen = q(state).gather(1, action.unsqueeze(1)).squeeze(1)
    loss = nn.functional.smooth_l1_loss(chosen, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 2:
        target.load_state_dict(q.state_dict())
    print(loss.item().hex())
