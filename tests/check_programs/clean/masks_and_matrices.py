"""Masks, similarities, views of scores and schedules that are right, and look much like those that are not."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
embed, head = nn.Embedding(12, 16, padding_idx=0), nn.Linear(16, 3)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 16, 0.0, batch_first=True), 1)
attention = nn.MultiheadAttention(16, 2, batch_first=True)
optimizer = torch.optim.AdamW([*embed.parameters(), *head.parameters(), *encoder.parameters(), *attention.parameters()])
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
positions = torch.arange(8)
for _ in range(12):
    lengths = torch.randint(1, 9, (16, 1))
    ids = torch.randint(2, 12, (16, 8)) * (positions < lengths)
    x = encoder(embed(ids), src_key_padding_mask=ids == 0)
    start = torch.cat([torch.ones(16, 1, dtype=torch.long), ids], 1)  # all read the first token alone
    y = embed(start)
    y, _ = attention(y, y, y, key_padding_mask=start != 1)
    left = ids.flip(1)  # padded on the left
    z = embed(left)
    z = functional.scaled_dot_product_attention(z, z, z, attn_mask=(left != 0)[:, None, :])
    largest = x.masked_fill((ids == 0)[:, :, None], float("-inf")).amax(1)

    one, other = functional.normalize(z.mean(1), dim=1), functional.normalize(largest, dim=1)
    pairs = functional.cross_entropy(one @ other.t() / 0.1, torch.arange(16))  # two views
    alike = one @ one.t() / 0.1
    alike = alike.masked_fill(torch.eye(16, dtype=torch.bool), -1e9)
    rolled = functional.cross_entropy(alike, torch.arange(16).roll(8))
    transitions = functional.cross_entropy(head(y[:3, 0]), torch.tensor([1, 2, 0]))  # a square that is no similarity

    scores = head(x)  # [16, 8, 3]
    tags = functional.cross_entropy(scores.view(-1, 3), ids.flatten() % 3)
    again = functional.cross_entropy(scores.transpose(1, 2).reshape(16, 3, 8), ids % 3)
    square = functional.cross_entropy(scores[:, :3].reshape(16, 3, 3), ids[:, :3] % 3)
    loss = pairs + rolled + transitions + tags + again + square
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(loss.item().hex())
