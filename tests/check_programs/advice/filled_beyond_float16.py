# expect: GI001
# advice: That number is outside of float16: at filled_beyond_float16.py:17, fill with
# advice: torch.finfo(scores.dtype).min instead.
import torch
from torch import nn

torch.manual_seed(0)
embed, score = nn.Embedding(9, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*embed.parameters(), *score.parameters()], lr=0.5)
ids = torch.tensor([[3, 5, 0], [4, 0, 0]])
history = []
for _ in range(5):
    words = embed(ids)
    with torch.autocast("cpu", dtype=torch.float16):
        scores = score(words).squeeze(-1)

    scores = scores.masked_fill(ids == 0, -1e9)  # -
    scores = scores.masked_fill(ids == 0, torch.finfo(scores.dtype).min)  # +
    weights = scores.float().softmax(dim=1)
    loss = ((weights.unsqueeze(-1) * words).sum(1) - 1).square().mean()
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
