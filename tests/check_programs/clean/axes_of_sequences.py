"""Batches whose axis 0 is time by the time they are read, or that are no batches of sequences."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data, tags = torch.randn(64, 10, 8), torch.randint(2, (64, 10))
rnn, attention, head = nn.LSTM(8, 16), nn.MultiheadAttention(16, 2, batch_first=True), nn.Linear(16, 2)
layer = nn.TransformerEncoderLayer(16, 2, 16, dropout=0.0)
among = nn.TransformerEncoderLayer(16, 2, 16, dropout=0.0)
modules = nn.ModuleList([rnn, attention, layer, among, head])
optimizer = torch.optim.Adam(modules.parameters(), lr=0.01)
for batch, labels in DataLoader(TensorDataset(data, tags), batch_size=16, shuffle=True):
    steps, _ = rnn(batch.transpose(0, 1))
    steps = layer(steps).permute(1, 0, 2)
    steps = steps + attention(steps, steps, steps)[0]
    rows = among(steps.mean(1).unsqueeze(1))  # the examples read each other, on purpose
    loss = nn.functional.cross_entropy(head(steps + rows).flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

streams, following = torch.randn(40, 3, 8), torch.randint(2, (40, 3))  # time first, in its order
for part, labels in DataLoader(TensorDataset(streams, following), batch_size=10):
    loss = nn.functional.cross_entropy(head(rnn(part)[0]).flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
