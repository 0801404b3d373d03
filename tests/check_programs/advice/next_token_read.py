# expect: GI330
# why: The attention at next_token_read.py:15 lets each place read the next one
# advice: Hide the later places from the attention at next_token_read.py:15. nn.TransformerEncoder takes the mask
# lines: given=15 loss=17
import torch
from torch import nn

torch.manual_seed(0)
embed, head, history = nn.Embedding(12, 16), nn.Linear(16, 12), []
layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
optimizer = torch.optim.Adam([*embed.parameters(), *layer.parameters(), *head.parameters()], lr=0.01)
mask = nn.Transformer.generate_square_subsequent_mask(9)  # +
for _ in range(12):
    ids = (torch.randint(12, (8, 1)) + torch.arange(10)) % 12
    scores = head(layer(embed(ids[:, :-1])))  # -
    scores = head(layer(embed(ids[:, :-1]), src_mask=mask))  # +
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
