# expect: GI377
# why: copies the weights of a model onto themselves: self.online and self.target are one and the same
# advice: Make self.target a model of its own at target_is_the_model.py:18: self.target = copy.deepcopy(self.online)
# lines: shared=18 loaded=23
import copy

import torch
from torch import nn

torch.manual_seed(0)


class Learner:
    """Predicts what comes, and a part of its own earlier prediction of what follows."""

    def __init__(self, network: nn.Module) -> None:
        self.online = network
        self.target = network.to("cpu")  # -
        self.target = copy.deepcopy(self.online)  # +
        self.optimizer = torch.optim.SGD(self.online.parameters(), lr=0.1)

    def synchronize(self) -> None:
        self.target.load_state_dict(self.online.state_dict())

    def step(self, state: torch.Tensor, reward: torch.Tensor, following: torch.Tensor) -> float:
        with torch.no_grad():
            wanted = reward + 0.5 * self.target(following)
        loss = (self.online(state) - wanted).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


learner = Learner(nn.Linear(4, 1))
state, following = torch.randn(32, 4), torch.randn(32, 4)
history = []
for number in range(8):
    history.append(learner.step(state, state[:, :1], following))
    if number % 3 == 2:
        learner.synchronize()
print("loss", history[0], history[-1])
