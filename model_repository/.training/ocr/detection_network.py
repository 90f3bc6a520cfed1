"""The detector: the shape of EAST, thin. A residual encoder, a U that comes back to a quarter."""

import math

import torch
from torch import nn
from torch.nn import functional as F

WIDTHS = (24, 40, 64, 96)  # channels at 1/4, 1/8, 1/16, 1/32
BLOCKS = (1, 2, 2)  # residual blocks at 1/8, 1/16, 1/32
LAST = 32
REACH = 16.0  # pixels: what a distance of 1 before scaling stands for


def convolution(channels_in, channels_out, stride=1, size=3):
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(),
    )


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = convolution(channels, channels)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(x + self.norm(self.second(self.first(x))))


class TextDetection(nn.Module):
    """FP32 RGB [N,H,W,3], 0 to 255 -> score [N,H/4,W/4,1], geometry [N,H/4,W/4,5].

    Geometry: distances of a cell's point (4 x, 4 y) to the top, right, bottom and left edge of its
    word in pixels, and the word's angle, radians, counter-clockwise on the screen.
    """

    def __init__(self):
        super().__init__()
        # At once to a quarter: half of the time would go where the picture is still large.
        self.stem = convolution(3, WIDTHS[0], 4, size=7)
        pairs = list(zip(WIDTHS[:-1], WIDTHS[1:]))
        self.stages = nn.ModuleList(
            nn.Sequential(convolution(thin, wide, 2), *(Residual(wide) for _ in range(blocks)))
            for (thin, wide), blocks in zip(pairs, BLOCKS)
        )
        self.narrow = nn.ModuleList(nn.Conv2d(wide, thin, 3, 1, 1) for thin, wide in pairs)
        self.join = nn.ModuleList(
            convolution(thin, thin if thin > WIDTHS[0] else LAST) for thin, _ in pairs
        )
        self.head = nn.Conv2d(LAST, 6, 3, 1, 1)
        nn.init.constant_(self.head.bias[:1], -2.0)  # most of a picture is no text

    def maps(self, picture):
        """-> logits of the score [N,1,h,w], distances [N,4,h,w] in pixels, angle [N,1,h,w]"""
        x = self.stem(picture.permute(0, 3, 1, 2) / 127.5 - 1)
        skips = []
        for stage in self.stages:
            skips.append(x)
            x = stage(x)
        for skip, narrow, join in reversed(list(zip(skips, self.narrow, self.join))):
            # To the size of the skip, not by 2: a side need not be a multiple of 32.
            x = join(skip + F.interpolate(narrow(x), size=skip.shape[2:], mode="nearest"))
        score, distances, angle = self.head(x).split((1, 4, 1), dim=1)
        return score, F.softplus(distances) * REACH, (torch.sigmoid(angle) - 0.5) * (math.pi / 2)

    def forward(self, picture):
        score, distances, angle = self.maps(picture)
        geometry = torch.cat([distances, angle], dim=1)
        return torch.sigmoid(score).permute(0, 2, 3, 1), geometry.permute(0, 2, 3, 1)
