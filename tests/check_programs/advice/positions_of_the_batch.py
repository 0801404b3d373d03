# expect: GI707
# why: all 6 places of a sequence get the same entry
# advice: At positions_of_the_batch.py:15, slice the table by x.size(1), and transpose(0, 1) what you get.
# lines: added=15 attention=17
import torch
from torch import nn

torch.manual_seed(0)
layer, head, history = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Linear(8, 1), []
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.01)
pe = torch.randn(50, 1, 8)
words, place = torch.randn(4, 6, 8), torch.linspace(0, 1, 6).expand(4, 6)
for _ in range(8):
    x = words * 0.5
    x = x + pe[: x.size(0)]  # -
    x = x + pe[: x.size(1)].transpose(0, 1)  # +
    loss = nn.functional.mse_loss(head(layer(x)).squeeze(-1), place)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
