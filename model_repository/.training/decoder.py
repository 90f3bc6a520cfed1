"""The StyleGAN2 decoder: modulated convolutions, fixed noise, SFT conditions, RGB skips."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from operators import Fir, FusedLeakyReLU


class ModulatedConv2d(nn.Module):
    """A convolution whose weights are scaled per input channel by a style and then demodulated.

    Scaling the input by the style and the output by the demodulation factor is the same sum as
    scaling the weights, and keeps the weights constant, so that a runtime can prepare them once.
    """

    def __init__(self, n_in, n_out, size, style_dim, demodulate=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in, size, size) / math.sqrt(n_in * size**2))
        self.modulation = nn.Linear(style_dim, n_in)
        nn.init.normal_(self.modulation.weight, std=0.1 / math.sqrt(style_dim))
        nn.init.ones_(self.modulation.bias)
        self.demodulate = demodulate
        self.padding = size // 2

    def forward(self, x, style):
        scale = self.modulation(style)
        out = F.conv2d(x * scale[:, :, None, None], self.weight, padding=self.padding)
        if self.demodulate:
            energy = (scale**2) @ self.weight.pow(2).sum((2, 3)).t()
            # The weights start with unit energy per output channel, so this starts near 1.
            out = out * torch.rsqrt(energy + 1e-8)[:, :, None, None]
        return out


class StyleConv(nn.Module):
    """Modulated convolution, [upsample,] noise from a buffer (randomize_noise=False), activation.

    Convolving before upsampling costs a quarter, as StyleGAN2's transposed convolution does.
    """

    def __init__(self, n_in, n_out, style_dim, resolution, upsample=False):
        super().__init__()
        self.upsample = Fir(up=2) if upsample else None
        self.conv = ModulatedConv2d(n_in, n_out, 3, style_dim)
        self.noise_strength = nn.Parameter(torch.zeros(1))
        self.register_buffer("noise", torch.randn(1, 1, resolution, resolution))
        self.activate = FusedLeakyReLU(n_out)

    def forward(self, x, style):
        x = self.conv(x, style)
        if self.upsample is not None:
            x = self.upsample(x)
        return self.activate(x + self.noise_strength * self.noise)


class ToRGB(nn.Module):
    """Adds this resolution's RGB to the upsampled RGB of the resolution below. Starts at zero."""

    def __init__(self, n_in, style_dim, upsample=True):
        super().__init__()
        self.upsample = Fir(up=2) if upsample else None
        self.conv = ModulatedConv2d(n_in, 3, 1, style_dim, demodulate=False)
        nn.init.zeros_(self.conv.weight)
        self.bias = nn.Parameter(torch.zeros(1, 3, 1, 1))

    def forward(self, x, style, skip=None):
        rgb = self.conv(x, style) + self.bias
        return rgb if skip is None else rgb + self.upsample(skip)


class StyleDecoder(nn.Module):
    """channels: one width per resolution, 4 first."""

    def __init__(self, channels, style_dim):
        super().__init__()
        self.constant_input = nn.Parameter(torch.randn(1, channels[0], 4, 4))
        self.style_conv1 = StyleConv(channels[0], channels[0], style_dim, 4)
        self.to_rgb1 = ToRGB(channels[0], style_dim, upsample=False)
        self.style_convs = nn.ModuleList()
        self.to_rgbs = nn.ModuleList()
        for i, (n_in, n_out) in enumerate(zip(channels, channels[1:])):
            size = 8 << i
            self.style_convs.append(StyleConv(n_in, n_out, style_dim, size, upsample=True))
            self.style_convs.append(StyleConv(n_out, n_out, style_dim, size))
            self.to_rgbs.append(ToRGB(n_out, style_dim))

    def forward(self, styles, conditions):
        """styles: [N, 2 * sizes, style_dim]; conditions: a (scale, shift) per size from 8 on."""
        out = self.constant_input.expand(styles.shape[0], -1, -1, -1)
        out = self.style_conv1(out, styles[:, 0])
        rgb = self.to_rgb1(out, styles[:, 1])
        for i, (scale, shift) in enumerate(conditions):
            out = self.style_convs[2 * i](out, styles[:, 2 * i + 1])
            out = spatial_feature_transform(out, scale, shift)
            out = self.style_convs[2 * i + 1](out, styles[:, 2 * i + 2])
            rgb = self.to_rgbs[i](out, styles[:, 2 * i + 3], rgb)
        return rgb


def spatial_feature_transform(x, scale, shift):
    """SFT on the second half of the channels; the first half passes (GFPGAN's `sft_half`)."""
    same, transformed = torch.chunk(x, 2, dim=1)
    return torch.cat([same, transformed * scale + shift], dim=1)
