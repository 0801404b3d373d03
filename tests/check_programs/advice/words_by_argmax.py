# expect: GI301
# advice: At words_by_argmax.py:14, use softmax() as weights, or torch.nn.functional.gumbel_softmax(scores,
# advice: hard=True), instead of argmax.
# lines: backward=18 detached=14 read=13 step=19
import torch
from torch import nn

torch.manual_seed(0)
encoder, codes = nn.Linear(8, 5), nn.Embedding(5, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *codes.parameters()], lr=0.3)
x, losses = torch.randn(64, 8), []
for _ in range(30):
    scores = encoder(x)
    guess = codes(scores.argmax(1))  # -
    guess = torch.softmax(scores, 1) @ codes.weight  # +
    loss = (guess - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
