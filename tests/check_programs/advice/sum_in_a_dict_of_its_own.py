# expect: GI801
# lines: made=15
# advice: sum_in_a_dict_of_its_own.py:15 makes what stats[*] holds: keep a number of it
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Stats(dict[str, torch.Tensor]):
    def note(self, name: str, value: torch.Tensor) -> None:
        """Add up."""
        self[name] = self.get(name, 0) + value  # -
        self[name] = self.get(name, 0) + value.detach()  # +


stats, x, history = Stats(), torch.randn(8, 4), []
for _ in range(6):
    loss = (model(x) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    stats.note("loss", loss)
    history.append(loss.item())
print("loss", history[0], history[-1])
