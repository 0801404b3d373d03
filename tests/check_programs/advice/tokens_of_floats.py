# expect: GI001
# advice: At tokens_of_floats.py:12, pass tokens.long().
import torch
from torch import nn

torch.manual_seed(0)
emb = nn.Embedding(10, 4)
tokens = torch.tensor([1.0, 3.0, 5.0])
optimizer = torch.optim.Adam(emb.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (emb(tokens) - 1).square().mean()  # -
    loss = (emb(tokens.long()) - 1).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
