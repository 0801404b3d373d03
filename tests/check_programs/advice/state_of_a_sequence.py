# expect: GI401
# why: brings the graph of an earlier iteration into this one
# advice: Which line keeps 'h' of state_of_a_sequence.py:20 for the next iteration? Detach it there, once;
# never: write 'h =
import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(6, 4)
        self.hidden = torch.zeros(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Go through a sequence, from where the last one ended."""
        h = self.hidden
        for t in range(x.shape[1]):
            both = torch.cat([x[:, t], h], dim=1)
            h = torch.tanh(self.cell(both))
        self.hidden = h  # -
        self.hidden = h.detach()  # +
        return h


torch.manual_seed(0)
memory, head = Memory(), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*memory.parameters(), *head.parameters()], lr=0.05)
x = torch.randn(16, 5, 2)
y = x.sum((1, 2)).unsqueeze(1)
history = []
try:
    for _ in range(8):
        loss = (head(memory(x)) - y).square().mean()
        if not history:
            history.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
except RuntimeError as error:
    print(error)
history.append(loss.item())
print("loss", history[0], history[-1])
