# expect: GI712
# why: all places of the tokens [4, 6] get the same of 16 entries
# advice: If this is the table of positions, make the index with torch.arange(length of the sequences).
# lines: made=15 used=17
import torch
from torch import nn

torch.manual_seed(0)
words, positions, history = nn.Embedding(20, 8), nn.Embedding(16, 8), []
layer, head = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Linear(8, 1)
parameters = [p for part in (words, positions, layer, head) for p in part.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.01)
tokens, place = torch.randint(0, 20, (4, 6)), torch.linspace(0, 1, 6).expand(4, 6)
for _ in range(8):
    index = torch.full((tokens.size(1),), tokens.size(1) - 1)  # -
    index = torch.arange(tokens.size(1))  # +
    x = words(tokens) + positions(index)
    loss = nn.functional.mse_loss(head(layer(x)).squeeze(-1), place)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
