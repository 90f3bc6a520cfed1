"""The two custom operators of StyleGAN2, in plain PyTorch so that they can be traced."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def upfirdn2d(x, kernel, up=1, down=1, pad=(0, 0)):
    """Zero-insert upsample, pad, FIR filter, downsample.

    x: [N,C,H,W]; kernel: [K,K]; pad: (before, after), the same on both axes.
    """
    # Plain integers: the network has one size, and the ONNX exporter must know every shape.
    n, c, h, w = (int(size) for size in x.shape)
    if up > 1:
        x = F.pad(x.reshape(n, c, h, 1, w, 1), (0, up - 1, 0, 0, 0, up - 1))
        x = x.reshape(n, c, h * up, w * up)
    x = F.pad(x, (pad[0], pad[1], pad[0], pad[1]))
    flipped = torch.flip(kernel, [0, 1]).expand(c, 1, *kernel.shape)
    return F.conv2d(x, flipped, stride=down, groups=c)


class Fir(nn.Module):
    """Doubles (`up=2`) or halves (`down=2`) the size with StyleGAN2's [1,3,3,1] filter."""

    def __init__(self, up=1, down=1):
        super().__init__()
        taps = torch.tensor([1.0, 3.0, 3.0, 1.0])
        kernel = taps[None, :] * taps[:, None]
        self.register_buffer("kernel", kernel / kernel.sum() * up**2)
        self.up, self.down = up, down
        self.pad = (2, 1) if up > 1 else (1, 1)

    def forward(self, x):
        return upfirdn2d(x, self.kernel, self.up, self.down, self.pad)


class FusedLeakyReLU(nn.Module):
    """leaky_relu(x + bias[c], 0.2) * sqrt(2)"""

    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return F.leaky_relu(x + self.bias.view(1, -1, 1, 1), 0.2) * math.sqrt(2)


def conv(n_in, n_out, size):
    """A convolution without bias, initialised so that FusedLeakyReLU keeps the variance."""
    layer = nn.Conv2d(n_in, n_out, size, padding=size // 2, bias=False)
    nn.init.normal_(layer.weight, std=1 / math.sqrt(n_in * size**2))
    return layer


def conv_act(n_in, n_out, size):
    return nn.Sequential(conv(n_in, n_out, size), FusedLeakyReLU(n_out))
