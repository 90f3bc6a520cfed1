"""GFPGAN's "clean" architecture, narrower: a U-Net whose features steer a StyleGAN2 decoder."""

import math

from torch import nn

from decoder import StyleDecoder
from operators import Fir, conv, conv_act

CHANNELS = (48, 48, 48, 48, 32, 32, 16)  # at 4, 8, 16, 32, 64, 128, 256
STYLE_DIM = 32


class DownBlock(nn.Module):
    """conv, halve, conv, beside a halved 1x1 skip. The width changes at the lower resolution."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv1 = conv_act(n_in, n_in, 3)
        self.conv2 = conv_act(n_in, n_out, 3)
        self.skip = conv(n_in, n_out, 1)
        self.shrink = Fir(down=2)

    def forward(self, x):
        out = self.conv2(self.shrink(self.conv1(x)))
        return (out + self.skip(self.shrink(x))) / math.sqrt(2)


class UpBlock(nn.Module):
    """conv, double, conv, beside a doubled 1x1 skip. The width changes at the lower resolution."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv1 = conv_act(n_in, n_out, 3)
        self.conv2 = conv_act(n_out, n_out, 3)
        self.skip = conv(n_in, n_out, 1)
        self.enlarge = Fir(up=2)

    def forward(self, x):
        out = self.conv2(self.enlarge(self.conv1(x)))
        return (out + self.enlarge(self.skip(x))) / math.sqrt(2)


class GFPGAN(nn.Module):
    """[N,3,256,256] in [-1,1] (RGB) -> the same shape, restored.

    Two departures from the published network, both so that minutes of training on one core are
    enough: the decoder draws a correction that is added to the input, and the U-Net has a skip
    connection at 256 as well.
    """

    def __init__(self, channels=CHANNELS, style_dim=STYLE_DIM):
        super().__init__()
        levels = len(channels) - 1
        self.style_shape = (2 * len(channels), style_dim)
        self.conv_body_first = conv_act(3, channels[-1], 1)
        self.conv_body_down = nn.ModuleList(
            DownBlock(channels[i], channels[i - 1]) for i in range(levels, 0, -1)
        )
        self.final_conv = conv_act(channels[0], channels[0], 3)
        self.final_linear = nn.Linear(channels[0] * 16, math.prod(self.style_shape))
        self.conv_body_up = nn.ModuleList()
        self.condition_scale = nn.ModuleList()
        self.condition_shift = nn.ModuleList()
        self.to_rgb = nn.ModuleList()  # used only by the training loss
        for n_in, n_out in zip(channels, channels[1:]):
            self.conv_body_up.append(UpBlock(n_in, n_out))
            self.condition_scale.append(condition(n_out, bias=1.0))
            self.condition_shift.append(condition(n_out, bias=0.0))
            self.to_rgb.append(nn.Conv2d(n_out, 3, 1))
        self.stylegan_decoder = StyleDecoder(channels, style_dim)

    def forward(self, x):
        return self.restore(x)[0]

    def restore(self, x):
        """Returns the restored picture and the U-Net's feature map at each size from 8 to 256."""
        feature = self.conv_body_first(x)
        skips = [feature]
        for down in self.conv_body_down:
            feature = down(feature)
            skips.append(feature)
        feature = self.final_conv(feature) + skips.pop()
        styles = self.final_linear(feature.flatten(1)).reshape(-1, *self.style_shape)
        conditions, features = [], []
        for up, to_scale, to_shift in zip(
            self.conv_body_up, self.condition_scale, self.condition_shift
        ):
            feature = up(feature) + skips.pop()
            features.append(feature)
            conditions.append((to_scale(feature), to_shift(feature)))
        return x + self.stylegan_decoder(styles, conditions), features

    def pyramid(self, features):
        """The U-Net's own guess of the clean picture at each size, for the intermediate loss."""
        return [head(feature) for head, feature in zip(self.to_rgb, features)]


def condition(channels, bias):
    """Two convolutions: an SFT scale (around 1) or shift (around 0) for half the channels."""
    last = nn.Conv2d(channels, channels // 2, 3, padding=1)
    nn.init.normal_(last.weight, std=0.5 / math.sqrt(9 * channels))
    nn.init.constant_(last.bias, bias)
    return nn.Sequential(conv_act(channels, channels, 3), last)
