# expect: GI354
# why: selects 48 columns of each of 48 rows
# advice: take one element of each row: .gather(1, index.unsqueeze(1)).squeeze(1).
# lines: indexed=16 backward=22
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(6, 3)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
states, actions, gains = torch.randn(48, 6), torch.randint(3, (48,)), torch.randn(48)
history = []
for _ in range(20):
    log_probs = policy(states).log_softmax(1)

    chosen = log_probs[:, actions]  # -
    chosen = log_probs.gather(1, actions.unsqueeze(1)).squeeze(1)  # +

    loss = -(chosen * gains).mean()
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
