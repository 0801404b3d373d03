"""A script without backward: the graph is found behind the tensors it leaves, in a dataclass and in a dict too.

Try: gradinspect trace samples/no_backward.py
"""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Detection:
    boxes: torch.Tensor
    scores: torch.Tensor


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU())
        self.boxes = nn.Conv2d(8, 4, 1)
        self.scores = nn.Conv2d(8, 2, 1)

    def forward(self, images):
        features = self.backbone(images)
        return Detection(boxes=self.boxes(features), scores=self.scores(features).softmax(dim=1))


torch.manual_seed(0)
model = Detector()
detection = model(torch.randn(1, 3, 16, 16))
statistics = {"mean": detection.scores.mean(), "largest": detection.scores.amax(dim=(2, 3))}

print("boxes", tuple(detection.boxes.shape), "scores", tuple(detection.scores.shape))
print("mean score", round(statistics["mean"].item(), 4))
