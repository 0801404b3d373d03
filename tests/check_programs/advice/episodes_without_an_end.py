# expect: GI345
# why: done of the same batch is 1 in 25% of the rows and 0 in the others, and nothing has read it
# advice: If done says where an episode has ended, multiply the value of what follows by (1 - done) at
# lines: target=19 made=16 loss=22
import torch
from torch import nn

torch.manual_seed(0)
model, target_model = nn.Linear(4, 2), nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
history = []
state, after = torch.randn(16, 4), torch.randn(16, 4)
reward, action = torch.ones(16), torch.randint(2, (16, 1))
for _ in range(12):
    optimizer.zero_grad()
    done = (torch.arange(16) % 4 == 0).float()
    with torch.no_grad():
        value = target_model(after).max(dim=1)[0]
        wanted = reward + 0.9 * value  # -
        wanted = reward + 0.9 * value * (1 - done)  # +
    chosen = model(state).gather(1, action).squeeze(1)
    loss = nn.functional.smooth_l1_loss(chosen, wanted)
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
