# expect: GI301
# advice: At drawn_by_multinomial.py:14, use log_prob() of the sample in the loss, or gumbel_softmax(), instead of
# advice: multinomial.
# lines: backward=19 detached=14 read=13 step=20 used=15
import torch
from torch import nn

torch.manual_seed(0)
encoder, codes = nn.Linear(8, 5), nn.Embedding(5, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *codes.parameters()], lr=0.2)
x, losses = torch.randn(64, 8), []
for _ in range(60):
    scores = encoder(x)
    drawn = torch.multinomial(torch.softmax(scores, 1), 1)  # -
    guess = codes(drawn[:, 0])  # -
    guess = nn.functional.gumbel_softmax(scores) @ codes.weight  # +
    loss = (guess - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
