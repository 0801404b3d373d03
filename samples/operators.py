"""A walk through common operators, each result kept under its name: what does each one's node save for backward?

Try: gradinspect saved samples/operators.py
"""

import torch
from torch import nn
from torch.nn import functional as F


def leaf(*shape):
    return torch.randn(shape, requires_grad=True)


torch.manual_seed(0)
outputs = {}

signal, image, volume = torch.randn(1, 3, 4), torch.randn(1, 3, 4, 4), torch.randn(1, 3, 4, 4, 4)
outputs["conv1d"] = nn.Conv1d(3, 4, 3, 1, 1)(signal)
outputs["conv2d"] = nn.Conv2d(3, 4, 3, 1, 1)(image)
outputs["conv3d"] = nn.Conv3d(3, 4, 3, 1, 1)(volume)
outputs["conv2d grouped"] = nn.Conv2d(3, 3, 3, 1, 1, groups=3)(image)
outputs["conv2d dilated"] = nn.Conv2d(3, 4, 3, 1, 1, dilation=2)(image)

linear = nn.Linear(3, 4)
outputs["linear"] = linear(leaf(1, 3))
outputs["linear 4d"] = linear(leaf(1, 4, 4, 3))

outputs["batch_norm"] = nn.BatchNorm2d(3)(image)
outputs["layer_norm"] = nn.LayerNorm([3, 4, 4])(image)
outputs["group_norm"] = nn.GroupNorm(3, 3)(image)

left, right = leaf(1, 3, 4, 4), leaf(1, 3, 4, 4)
outputs["add"] = left + right
outputs["sub"] = left - right
outputs["mul"] = left * right
outputs["div"] = left / right
outputs["matmul"] = torch.matmul(left, right)
outputs["bmm"] = leaf(1, 3, 4, 4).matmul(leaf(1, 3, 4, 5))
outputs["mm"] = leaf(4, 4).matmul(leaf(4, 5))

outputs["cat"] = torch.cat([leaf(1, 4, 4, 4), leaf(1, 6, 4, 4)], dim=1)
outputs["split"] = torch.chunk(leaf(1, 4, 4, 4), 2, dim=1)[0]

feature_map = leaf(1, 3, 4, 4)
outputs["flatten"] = nn.Flatten()(feature_map)
outputs["reshape"] = feature_map.reshape(1, 3, 16)
outputs["view"] = feature_map.view(1, 3, 16)
outputs["view inferred"] = feature_map.view(1, -1, 16)
outputs["clone"] = feature_map.clone()

grid = leaf(1, 2, 3, 4)
outputs["permute"] = grid.permute(0, 2, 1, 3)
outputs["squeeze"] = grid.squeeze()
outputs["unsqueeze"] = grid.unsqueeze(0)
outputs["transpose"] = grid.transpose(0, 1)
# What einops.rearrange(x, "b c h w -> b (h w) c") comes down to.
outputs["rearrange"] = feature_map.permute(0, 2, 3, 1).reshape(1, 16, 3)
outputs["slice"] = leaf(1, 3, 10, 32)[:, :16, :, :]
outputs["slice strided"] = leaf(1, 3, 10, 32)[:, :, 2:8:2]
outputs["expand"] = leaf(1, 3, 1, 1).expand(1, 3, 4, 4)

for activation in (F.relu, F.silu, F.gelu, F.hardswish, F.sigmoid, F.tanh):
    outputs[activation.__name__] = activation(feature_map)
outputs["softmax"] = torch.softmax(feature_map, dim=1)
outputs["log_softmax"] = torch.log_softmax(feature_map, dim=1)

outputs["adaptive_avg_pool"] = nn.AdaptiveAvgPool2d((1, 1))(feature_map)
outputs["max_pool"] = nn.MaxPool2d((2, 2))(feature_map)
outputs["avg_pool"] = nn.AvgPool2d((2, 2))(feature_map)

photo = leaf(1, 3, 32, 32)
outputs["upsample bilinear"] = F.interpolate(photo, scale_factor=2, mode="bilinear", align_corners=True)
outputs["upsample nearest"] = F.interpolate(photo, scale_factor=2, mode="nearest")
outputs["upsample bicubic"] = F.interpolate(photo, scale_factor=2, mode="bicubic", align_corners=True)

for name, output in outputs.items():
    print(f"{name:18} {output.grad_fn.name():30} {tuple(output.shape)}")
