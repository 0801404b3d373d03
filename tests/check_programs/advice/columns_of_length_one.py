# expect: GI703
# why: columns_of_length_one.py:13 and columns_of_length_one.py:15, [12, 6] is divided by its norm along axis 0
# advice: normalize along axis 1, as by dim=1: the product sums over it.
# lines: divided=13 product=17
import torch
from torch import nn

torch.manual_seed(0)


def embeddings(picture, words):
    """Bring both to the length of one."""
    seen = picture / picture.norm(dim=0, keepdim=True)  # -
    seen = picture / picture.norm(dim=1, keepdim=True)  # +
    read = nn.functional.normalize(words, dim=0)  # -
    read = nn.functional.normalize(words, dim=1)  # +
    return seen @ read.T


pictures, texts = torch.randn(12, 9), torch.randn(12, 5)
eye, ear = nn.Linear(9, 6), nn.Linear(5, 6)
optimizer = torch.optim.Adam([*eye.parameters(), *ear.parameters()], lr=0.02)
pairs, history = torch.arange(12), []
for _ in range(25):
    scores = embeddings(eye(pictures), ear(texts)) / 0.1
    loss = (nn.functional.cross_entropy(scores, pairs) + nn.functional.cross_entropy(scores.T, pairs)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
