# expect: GI333
# advice: Give the loss of padding_in_the_mean.py:39 ignore_index=0. To learn where rows end, keep one a row.
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

PAD = 0


class Tagger(nn.Module):
    def __init__(self, num_words, num_tags):
        super().__init__()
        self.embed = nn.Embedding(num_words, 16, padding_idx=PAD)
        self.rnn = nn.GRU(16, 32, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(64, num_tags)

    def forward(self, words):
        return self.tags(self.rnn(self.embed(words))[0])


def batch():
    lengths = torch.randint(2, 5, (16,)).tolist()
    lengths[0] = 20
    words = pad_sequence([torch.randint(1, 30, (length,)) for length in lengths], batch_first=True)
    return words, torch.where(words == PAD, PAD, words % 4 + 1)


torch.manual_seed(0)
model = Tagger(30, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for _ in range(60):
    words, tags = batch()
    scores = model(words)

    # fmt: off
    loss = F.cross_entropy(scores.transpose(1, 2), tags, ignore_index=PAD)  # +
    loss = F.cross_entropy(scores.transpose(1, 2), tags)  # -
    # fmt: on
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
