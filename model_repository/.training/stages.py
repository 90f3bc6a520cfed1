"""What stands before, around and after the network, each a module that is exported on its own."""

import torch
from torch import nn
from torch.nn import functional as F


class PreProcess(nn.Module):
    """uint8 BGR [H,W,3] -> float32 RGB [1,3,H,W] in [-1,1]"""

    def forward(self, image):
        x = image[:, :, [2, 1, 0]].to(torch.float32) / 255
        return ((x - 0.5) / 0.5).unsqueeze(0).permute(0, 3, 1, 2)


class PostProcess(nn.Module):
    """float32 RGB [1,3,H,W] -> uint8 BGR [H,W,3]

    The batch axis goes first: `[:, :, [2, 1, 0]]` on rank 4 would pick columns, not channels.
    """

    def forward(self, x):
        x = x.permute(0, 2, 3, 1).clamp(-1, 1)
        x = ((x + 1) / 2 * 255).to(torch.uint8)
        return x[0][:, :, [2, 1, 0]]


class AnySize(nn.Module):
    """float32 [1,3,H,W] -> the same: to 256 x 256 for the network, and back."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        small = F.interpolate(x, size=(256, 256), mode="bilinear", align_corners=False)
        # Tells the ONNX exporter that from here on every shape is known.
        restored = self.network(small.reshape(1, 3, 256, 256))
        return F.interpolate(restored, size=x.shape[2:], mode="bilinear", align_corners=False)
