# expect: GI336
# why: the loss was the negative of similarities (only_similar.py:25), and nothing else.
# advice: At only_similar.py:25, detach the side that is to be predicted, or compare with other examples as well.
# lines: compared=25 backward=29
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
predictor = nn.Linear(4, 4)
optimizer = torch.optim.SGD([*encoder.parameters(), *predictor.parameters()], lr=0.1)
x = torch.randn(64, 8)
history = []


def view():
    return x + 0.1 * torch.randn_like(x)


for _ in range(12):
    a, b = encoder(view()), encoder(view())
    loss = 0
    for p, z in ((predictor(a), b), (predictor(b), a)):
        loss = loss - F.cosine_similarity(p, z, dim=1).mean()  # -
        loss = loss - F.cosine_similarity(p, z.detach(), dim=1).mean()  # +

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
