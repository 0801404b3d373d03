# expect: GI001
# advice: The rows have different lengths: pad them, as torch.nn.utils.rnn.pad_sequence() does.
import torch
from torch import nn

torch.manual_seed(0)
emb = nn.Embedding(10, 4)
sentences = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]
tokens = torch.tensor(sentences)  # -
tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(one) for one in sentences], batch_first=True)  # +
optimizer = torch.optim.Adam(emb.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (emb(tokens).sum(2) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
