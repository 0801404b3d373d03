# expect: GI001
# advice: Pass the lengths that the scores have, at most 20, and not those of the inputs: strides shorten them.
"""The convolution halves the length of each clip."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(3, 16, 5, stride=2, padding=2), nn.ReLU(), nn.Conv1d(16, 6, 3, padding=1))
optimizer, loss_of, history = torch.optim.Adam(model.parameters(), lr=0.02), nn.CTCLoss(), []
x, words = torch.randn(8, 3, 40), torch.randint(1, 6, (8, 5))
for _ in range(20):
    scores = model(x).permute(2, 0, 1).log_softmax(2)
    lengths = torch.full((8,), x.shape[2])  # -
    lengths = torch.full((8,), scores.shape[0])  # +
    loss = loss_of(scores, words, lengths, torch.full((8,), 5))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
