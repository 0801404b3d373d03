# expect: GI401
# advice: after loss.backward() at state_of_a_recurrent_layer.py:33, add 'h = h.detach()'
# never: Which line keeps
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Predict the next value, and return the state."""
        y, h = self.rnn(x, h)
        return self.out(y), h


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
stream = torch.sin(torch.arange(60).float())[:, None, None].expand(60, 4, 3)
h = torch.zeros(1, 4, 8)
history = []
for start in range(0, 54, 6):
    x, y = stream[start : start + 6], stream[start + 1 : start + 7]

    prediction, h = model(x, h)
    loss = (prediction - y).square().mean()
    optimizer.zero_grad()
    history.append(loss.item())
    loss.backward()
    h = h.detach()  # +
    optimizer.step()
print("loss", history[0], history[-1])
