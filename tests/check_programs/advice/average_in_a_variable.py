# expect: GI307
# why: average_in_a_variable.py:37 makes a new tensor and calls it slow, which nothing reads before the loop goes on.
# advice: with torch.no_grad(): slow.copy_(0.5 * slow + 0.5 * fast)
# lines: assigned=37
import copy

import torch
from torch import nn

torch.manual_seed(0)


class Teacher:
    """Follows a student, and says what it should answer to noisy input."""

    def __init__(self, student: nn.Module) -> None:
        self.student, self.model = student, copy.deepcopy(student).requires_grad_(False)
        self.optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        self.x = torch.randn(64, 6)

    def step(self) -> float:
        """Take a step."""
        error = (self.student(self.x).squeeze(1) - self.x.sum(1)).square().mean()
        unlike = (self.student(self.x + 0.1 * torch.randn(64, 6)) - self.model(self.x)).square().mean()
        loss = error + unlike
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.follow()
        return loss.item()

    @torch.no_grad()
    def follow(self) -> None:
        """Move towards the student."""

        for slow, fast in zip(self.model.parameters(), self.student.parameters(), strict=True):
            slow = 0.5 * slow + 0.5 * fast  # -
            slow.copy_(0.5 * slow + 0.5 * fast)  # +


teacher = Teacher(nn.Linear(6, 1))
history = [teacher.step() for _ in range(12)]
print("loss", history[0], history[-1])
