"""
Writes small TorchScript models below a folder, each as NAME/1/model.pt: `python torchscript_models.py FOLDER`.

For `traced`, input.bin and output.bin beside it are FP32 [2, 3, 20, 24] and what plain torch.jit.load gives for it.
"""
import os
import sys
from typing import List, Tuple

import numpy as np
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 3, 1))

    def forward(self, x):
        return self.layers(x)


class Subtract(nn.Module):
    """Two results; a negative first number is refused."""

    def forward(self, left, right) -> Tuple[torch.Tensor, torch.Tensor]:
        if float(left.sum()) < 0:
            raise RuntimeError("the sum is negative")
        return left - right, left + right


class Upper(nn.Module):
    def forward(self, texts: List[str]) -> List[str]:
        return [text.upper() for text in texts]


class Segments(nn.Module):
    """Answers ragged requests: twice the flat `x`, and what the batcher made of its shapes."""

    def forward(self, x, made) -> Tuple[torch.Tensor, torch.Tensor]:
        assert x.dim() == 1
        return x * 2, made.unsqueeze(1)


def write(root, name, module):
    folder = os.path.join(root, name, "1")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.pt")
    module.save(path)
    return folder, path


def main(root):
    torch.manual_seed(7)
    network = Network().eval()
    folder, path = write(root, "traced", torch.jit.trace(network, torch.rand(1, 3, 16, 16)))
    pixels = torch.rand(2, 3, 20, 24)
    with torch.no_grad():
        result = torch.jit.load(path)(pixels)
    for filename, tensor in (("input.bin", pixels), ("output.bin", result)):
        np.ascontiguousarray(tensor.numpy()).tofile(os.path.join(folder, filename))
    write(root, "scripted", torch.jit.script(Subtract()))
    write(root, "segments", torch.jit.script(Segments()))
    write(root, "texts", torch.jit.script(Upper()))


if __name__ == "__main__":
    main(sys.argv[1])
