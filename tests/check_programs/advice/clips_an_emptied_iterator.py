# expect: GI364
# why: clips_an_emptied_iterator.py:25 clips nothing: self.trained is an iterator
# advice: Make a list at clips_an_emptied_iterator.py:16: self.trained = list(filter(lambda p: p.requires_grad,
# lines: made=16 clipped=25
import torch
from torch import nn

torch.manual_seed(0)


class Training:
    """Trains what requires grad."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.trained = filter(lambda p: p.requires_grad, model.parameters())  # -
        self.trained = list(filter(lambda p: p.requires_grad, model.parameters()))  # +
        self.optimizer = torch.optim.SGD(self.trained, lr=0.1)

    def step(self, x: torch.Tensor) -> float:
        """Take a step."""
        loss = (self.model(x).squeeze(1) - x.sum(1)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.trained, max_norm=1.0)
        self.optimizer.step()
        return loss.item()


training = Training(nn.Linear(6, 1))
x = torch.randn(64, 6)
history = [training.step(x) for _ in range(10)]
print("loss", history[0], history[-1])
