"""Language models whose attentions hide the next token in several ways, and others that may read all."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
embed, head = nn.Embedding(20, 16), nn.Linear(16, 20)
layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
pairs = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True)
both = nn.GRU(16, 16, batch_first=True, bidirectional=True)
modules = nn.ModuleList([embed, head, layer, pairs, both])
optimizer = torch.optim.Adam(modules.parameters(), lr=0.01)
hidden = torch.ones(9, 9, dtype=torch.bool).triu(1)
prefix = hidden.clone()
prefix[:4, :4] = False


def compared(scores, target):
    return F.cross_entropy(scores.flatten(0, 1), target.flatten())


for _ in range(6):
    ids = torch.randint(20, (9, 10))
    given, target = ids[:, :-1], ids[:, 1:]
    x = embed(given)
    by_layer = compared(head(layer(x, src_mask=hidden)), target)
    by_number = compared(head(layer(x, src_mask=torch.zeros(9, 9).masked_fill(hidden, float("-inf")))), target)
    from_prefix = compared(head(layer(x, src_mask=prefix)), target)
    weights = (x @ x.transpose(1, 2)).masked_fill(hidden, float("-inf")).softmax(-1)
    by_hand = compared(head(weights @ x), target)
    late = (x @ x.transpose(1, 2)).softmax(-1).tril()
    by_triangle = compared(head(late / late.sum(-1, keepdim=True) @ x), target)
    by_flag = compared(head(F.scaled_dot_product_attention(x, x, x, is_causal=True)), target)
    visible = F.scaled_dot_product_attention(x, x, x, attn_mask=~hidden)
    translated = compared(head(pairs(embed(torch.randint(20, (9, 9))), x, tgt_mask=hidden.float() * -1e9)), target)
    forth, back = both(x)[0].split(16, dim=2)
    one_way = compared(head(forth), target) + compared(head(back[:, 2:]), given[:, 1:-1])
    loss = by_layer + by_number + from_prefix + by_hand + by_triangle + by_flag + translated + one_way
    loss = loss + compared(head(visible), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

words = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
tagger = torch.optim.Adam([*words.parameters(), *head.parameters()], lr=0.01)
for _ in range(4):
    ids = torch.randint(20, (8, 9))
    loss = compared(head(words(embed.weight.detach()[ids])), ids % 5)  # a tag for each word, which may read all
    tagger.zero_grad()
    loss.backward()
    tagger.step()
print("loss", loss.item())
