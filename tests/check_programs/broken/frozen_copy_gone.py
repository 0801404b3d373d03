"""A student begins as a copy of a frozen teacher, in functions whose variables are gone when the program ends."""

import copy

import torch
from torch import nn


class Student(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = copy.deepcopy(encoder)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder(x))


def pretrained():
    encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    for parameter in encoder.parameters():
        parameter.requires_grad_(False)
    return encoder


def distill(encoder, student):
    optimizer = torch.optim.Adam(student.parameters())
    for _ in range(5):
        x = torch.randn(8, 4)
        loss = (student(x) - encoder(x)[:, :3]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    encoder = pretrained()
    distill(encoder, Student(encoder))


main()

# expect: GI379 frozen=22 called=37 copied=12 optimizer=27 step=33
