"""Two losses share an encoder, and its optimizer steps after the first one, before the second goes back through it."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder, classifier = nn.Linear(6, 4), nn.Linear(4, 6), nn.Linear(4, 2)
encoder = nn.Sequential(encoder, nn.Tanh(), nn.Linear(4, 4))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *classifier.parameters()])
x = torch.randn(3, 6)
reconstruction = (decoder(encoder(x)) - x).pow(2).mean()
label_loss = nn.functional.cross_entropy(classifier(encoder(x)), torch.tensor([0, 1, 0]))
reconstruction.backward()
optimizer.step()
label_loss.backward()
# expect: GI102 saved=12 written=14
