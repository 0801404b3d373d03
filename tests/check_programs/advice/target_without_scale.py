# expect: GI385
# why: mean and square change in the model and never in the copy
# advice: kept.copy_(new)
import torch
from torch import nn

torch.manual_seed(0)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("square", torch.ones(4))
        self.body = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), 0.2)
                self.square.lerp_(x.square().mean(0), 0.2)
        return self.body((x - self.mean) / (self.square - self.mean.square()).clamp(min=0.01).sqrt())


class Learner:
    def __init__(self):
        self.online, self.target = Critic(), Critic()
        self.target.load_state_dict(self.online.state_dict())
        self.target.eval()
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=0.01)

    def follow(self):
        for p, t in zip(self.online.parameters(), self.target.parameters(), strict=True):
            t.data.mul_(0.9).add_(p.data, alpha=0.1)
        for b, t in zip(self.online.buffers(), self.target.buffers(), strict=True):  # +
            t.copy_(b)  # +

    def learn(self, state, reward, after):
        with torch.no_grad():
            goal = reward + 0.5 * self.target(after)
        loss = (self.online(state) - goal).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.follow()
        return loss.item()


learner, history = Learner(), []
states = torch.randn(64, 4) * 3 + 20
for _ in range(60):
    history.append(learner.learn(states, states[:, :1] - 20, states.roll(1, 0)))
print("loss", history[0], history[-1])
