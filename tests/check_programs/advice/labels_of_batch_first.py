# expect: GI702
# why: The scores were flattened from [6, 4] and the targets from [4, 6]
# advice: transpose(0, 1) of the scores or of the targets makes [4, 6] of [6, 4], or the reverse.
# lines: scores=14 targets=15 loss=17
import torch
from torch import nn

torch.manual_seed(0)
layer, head, history = nn.GRU(5, 8), nn.Linear(8, 3), []
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.02)
x = torch.randn(6, 4, 5)
labels = x[..., :3].argmax(-1).t().contiguous()
for _ in range(8):
    flat = head(layer(x)[0]).reshape(-1, 3)
    wanted = labels.reshape(-1)  # -
    wanted = labels.transpose(0, 1).reshape(-1)  # +
    loss = nn.functional.cross_entropy(flat, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
