"""
Writes TorchScript models below a folder, each as NAME/config.pbtxt and NAME/1/model.pt: `gpu_models.py FOLDER`. `network` batches;
`hungry` takes as many GiB of its device as its input says.
"""

import os
import sys
from typing import List

import torch
from torch import nn

PORTS = """backend: "pytorch"
max_batch_size: {batch}
input {{ name: "x__0" data_type: {type} dims: [ {dims} ] }}
output {{ name: "y__0" data_type: {type} dims: [ {dims} ] }}
{rest}
"""
BATCHING = "dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 300000 }"


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 3, 1))

    def forward(self, x):
        return self.layers(x)


class Double(nn.Module):
    def forward(self, x):
        return x + x


class Upper(nn.Module):
    def forward(self, x: List[str]) -> List[str]:
        return [text.upper() for text in x]


class Hungry(nn.Module):
    def forward(self, x):
        taken = torch.zeros([int(x.sum()) * 1024 * 1024 * 1024], dtype=torch.uint8, device=x.device)
        return x + taken.numel() * 0


def main(root):
    torch.manual_seed(7)
    network = torch.jit.trace(Network().eval(), torch.rand(1, 3, 16, 16))
    write(root, "network", network, "TYPE_FP32", "3, -1, -1", batch=8, rest=BATCHING)
    double = torch.jit.script(Double().eval())
    write(root, "double_long", double, "TYPE_INT64", "-1")
    write(root, "double_half", double, "TYPE_FP16", "-1")
    write(root, "upper", torch.jit.script(Upper().eval()), "TYPE_STRING", "-1")
    write(root, "hungry", torch.jit.script(Hungry().eval()), "TYPE_FP32", "1")


def write(root, name, module, datatype, dims, batch=0, rest=""):
    folder = os.path.join(root, name, "1")
    os.makedirs(folder)
    module.save(os.path.join(folder, "model.pt"))
    with open(os.path.join(root, name, "config.pbtxt"), "w", encoding="utf-8") as file:
        file.write(PORTS.format(type=datatype, dims=dims, batch=batch, rest=rest))


if __name__ == "__main__":
    main(sys.argv[1])
