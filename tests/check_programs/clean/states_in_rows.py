"""States of RNNs and scores of pictures in the shapes that are right: axes are moved before they are counted anew."""

import torch
from torch import nn

torch.manual_seed(0)
lstm, gru = nn.LSTM(3, 5, num_layers=2, bidirectional=True, batch_first=True), nn.GRU(3, 5, batch_first=True)
scores, paint = nn.Linear(4 * 5 + 2 * 5 + 5 + 6 * 10, 2), nn.Conv2d(1, 3, 3, padding=1)
parts = [lstm, gru, scores, paint]
optimizer = torch.optim.Adam([one for part in parts for one in part.parameters()], lr=0.01)
series, picture = torch.randn(8, 6, 3), torch.randn(8, 1, 4, 6)
labels, classes = (series.sum((1, 2)) > 0).long(), (picture[:, 0] > 0).long() + 1
for _ in range(8):
    steps, (state, _) = lstm(series)
    _, last = gru(series)
    by_layer = state.view(2, 2, 8, 5)
    both = torch.cat([by_layer[-1, 0], by_layer[-1, 1]], dim=1)
    rows = state.permute(1, 0, 2).reshape(8, -1)
    features = torch.cat([rows, both, last.reshape(8, -1), steps.reshape(8, -1)], dim=1)
    colors = paint(picture)
    flat = colors.permute(0, 2, 3, 1).reshape(-1, 3)
    loss = nn.functional.cross_entropy(scores(features), labels)
    loss = loss + nn.functional.cross_entropy(flat, classes.flatten())
    loss = loss + nn.functional.cross_entropy(colors.flatten(2), classes.flatten(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
