# expect: GI358
# why: target_of_the_network_itself.py:17 computes from the network's own values, by amax()
# advice: Compute the target at target_of_the_network_itself.py:17 under torch.no_grad(), or use target.detach() at
# lines: target=17 used=19 backward=21
import torch
from torch import nn

torch.manual_seed(0)
values = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(values.parameters(), lr=0.01)
state, following = torch.randn(64, 4), torch.randn(64, 4)
action, reward, done = torch.randint(2, (64, 1)), torch.rand(64) + 1, (torch.rand(64) < 0.5).float()
losses = []
for _ in range(40):
    scores = values(state).gather(1, action).squeeze(1)
    best = values(following).amax(1)
    target = reward + 0.3 * best * (1 - done)  # -
    target = (reward + 0.3 * best * (1 - done)).detach()  # +
    loss = (scores - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
