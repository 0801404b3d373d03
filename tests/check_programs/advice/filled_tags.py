# expect: GI333
# advice: Fill up the labels with -100, which filled_tags.py:43 ignores: other tokens have the label 0, too.
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

NUM_WORDS, NUM_TAGS = 30, 5


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(NUM_WORDS, 16)
        self.rnn = nn.LSTM(16, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, NUM_TAGS)

    def forward(self, words):
        return self.head(self.rnn(self.embed(words))[0])


def batch():
    lengths = torch.randint(3, 7, (16,)).tolist()
    lengths[0] = 24
    words = [torch.randint(1, NUM_WORDS, (length,)) for length in lengths]
    tags = [row % NUM_TAGS for row in words]
    # fmt: off
    filled = pad_sequence(tags, batch_first=True, padding_value=-100)  # +
    filled = pad_sequence(tags, batch_first=True)  # -
    # fmt: on
    return pad_sequence(words, batch_first=True), filled


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loss_of = nn.CrossEntropyLoss()
losses = []
for _ in range(40):
    words, tags = batch()
    scores = model(words)
    optimizer.zero_grad()

    loss = loss_of(scores.view(-1, NUM_TAGS), tags.view(-1))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
