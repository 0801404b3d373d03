# expect: GI356
# why: made at mask_of_the_tokens.py:31, hides all positions but those with the id 0
# advice: ~(mask) in the place of mask
# lines: mask=31 used=22
import torch
from torch import nn
from torch.nn import functional


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.key, self.out = nn.Embedding(12, 16, padding_idx=0), nn.Linear(16, 16), nn.Linear(16, 2)
        self.place = nn.Parameter(0.1 * torch.randn(8, 16))

    def forward(self, ids, is_token):
        x = self.embed(ids) + self.place
        q, k, v = x, self.key(x), x
        mask = is_token[:, None, :]
        scores = q @ k.transpose(1, 2)
        mask = ~mask  # +
        y = functional.softmax(scores.masked_fill(mask, -1e9), -1) @ v
        return self.out(y[:, 0])


torch.manual_seed(0)
model, history = Reader(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
lengths = torch.arange(32) % 6 + 1
ids = torch.randint(1, 12, (32, 8)) * (torch.arange(8) < lengths[:, None])
is_token = ids != 0
y = (ids == 3).any(1).long()
for _ in range(8):
    loss = functional.cross_entropy(model(ids, is_token), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
