# expect: GI378
# why: dropout_in_eval.py:16 drops elements at random while the Model is in eval mode
# advice: Pass training=self.training at dropout_in_eval.py:16.
# lines: called=16
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = nn.Linear(4, 32), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.dropout(self.layer(x), 0.1))  # -
        return self.out(F.dropout(self.layer(x), 0.1, training=self.training))  # +


torch.manual_seed(0)
model, history = Model(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(64, 4)
for _ in range(8):
    model.train()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        history.append((model(x) - x.sum(1, keepdim=True)).square().mean().item())
print("loss", history[0], history[-1])
