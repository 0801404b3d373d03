# expect: GI701
# advice: At value_of_a_column.py:18, call squeeze(-1) on the [64, 1] that it makes, so that all who read it get the
# advice: same shape.
# lines: made=18 broadcast=29
import torch
from torch import nn


class Critic(nn.Module):
    """Values of states, and actions for them."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.policy, self.value = nn.Linear(8, 32), nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        return self.policy(h), self.value(h)  # -
        return self.policy(h), self.value(h).squeeze(-1)  # +


torch.manual_seed(0)
net, history = Critic(), []
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(64, 8)
wanted, rewards = x[:, :3].argmax(1), x.sum(1)
for _ in range(20):
    scores, values = net(x)
    loss = (rewards - values).square().mean()
    advantage = rewards - values.detach()
    loss = loss + (nn.functional.cross_entropy(scores, wanted, reduction="none") * advantage.abs()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
