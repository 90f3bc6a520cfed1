"""The reader: the shape of a CRNN, 26 columns of 37 classes, with convolutions along the columns.

Convolutions instead of a recurrent layer: they train faster on a processor, and take an empty batch.
"""

from torch import nn
from torch.nn import functional as F

from pictures import ALPHABET

CLASSES = 1 + len(ALPHABET)  # 0 is the blank
COLUMNS = 26
WIDTH = 192


def convolution(channels_in, channels_out, size=3, stride=1, padding=1):
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, size, stride, padding, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(),
    )


class Along(nn.Module):
    """A residual step along the columns: each sees two neighbours on either side."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(WIDTH, WIDTH, (1, 5), 1, (0, 2), bias=False)
        self.norm = nn.BatchNorm2d(WIDTH)

    def forward(self, x):
        return F.relu(x + self.norm(self.convolution(x)))


class TextRecognition(nn.Module):
    """FP32 grey [N,1,32,100] in [-1,1] -> logits [N,26,37]"""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            convolution(1, 32, stride=2),  # 16 x 50
            convolution(32, 48),
            convolution(48, 96, (3, 4), 2, (1, 2)),  # 8 x 26
            convolution(96, 96),
            convolution(96, 128, stride=(2, 1)),  # 4 x 26
            convolution(128, WIDTH, (4, 1), padding=0),  # 1 x 26
            Along(),
            Along(),
            Along(),
            nn.Dropout2d(0.1),
            nn.Conv2d(WIDTH, CLASSES, 1),
        )

    def forward(self, crops):
        return self.layers(crops).squeeze(2).transpose(1, 2)
