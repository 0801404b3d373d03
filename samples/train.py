"""A whole training script, with arguments of its own and worker processes that load the data.

Try: gradinspect trace samples/train.py -- --epochs 1
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class SineWaves(Dataset):
    """Short waves, to be told apart by their frequency."""

    def __init__(self, num_waves, num_classes):
        self.num_waves = num_waves
        self.num_classes = num_classes

    def __len__(self):
        return self.num_waves

    def __getitem__(self, index):
        frequency = index % self.num_classes
        phase = torch.tensor(float(index))
        return torch.sin(torch.linspace(0, 6.28, 32) * (frequency + 1) + phase), frequency


def parse_arguments():
    parser = argparse.ArgumentParser(description="Classify sine waves.")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


def train_epoch(model, loader, optimizer):
    total = 0.0
    for waves, labels in loader:
        loss = F.cross_entropy(model(waves), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    arguments = parse_arguments()
    torch.manual_seed(0)
    loader = DataLoader(SineWaves(256, 4), arguments.batch_size, shuffle=True, num_workers=arguments.workers)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    for epoch in range(arguments.epochs):
        print(f"epoch {epoch}: loss {train_epoch(model, loader, optimizer):.4f}")


if __name__ == "__main__":
    main()
