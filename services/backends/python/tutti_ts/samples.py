"""Inputs to warm a model up with, where none are given."""
from __future__ import annotations

from .datatypes import dtypes

#: Numbers that stand for an extent of -1, in the order in which they are tried: most networks halve their input a few times.
_FILLS = (64, 32, 224, 256, 128, 16, 8, 4, 2, 1)


def sample_inputs(ports, torch, device):
    """
    Yields sets of inputs with the configuration's shapes (batch 1), one per fill of the variable extents, each as the list that
    `forward` takes. Numbers come from a generator of their own and are small: they may be used as indices.
    """
    is_variable = any(extent < 0 for port in ports.inputs for extent in port.dims)
    for fill in _FILLS if is_variable else _FILLS[:1]:
        generator = torch.Generator().manual_seed(fill)
        shapes = {
            port.name: [1] * ports.is_batching + [fill if extent < 0 else extent for extent in port.dims]
            for port in ports.inputs
        }
        yield [_input(port, shapes, ports.ragged, torch, generator, device) for port in ports.inputs]


def _input(port, shapes: dict, ragged, torch, generator, device):
    made = ragged.made.get(port.name)
    if made is not None:
        return torch.from_numpy(made.tensor([shapes[made.source]])).to(device)
    value = _sample(port, shapes[port.name], torch, generator, device)
    return value.flatten() if port.name in ragged.inputs and port.datatype != "BYTES" else value


def _sample(port, shape: list, torch, generator, device):
    if port.datatype == "BYTES":
        return ["0"] * (shape[0] if shape else 1)
    kind = dtypes(torch)[port.datatype]
    if kind.is_floating_point:
        return torch.rand(shape, generator=generator).to(device, kind)
    greatest = 256 if port.datatype == "UINT8" and len(port.dims) > 1 else 2
    return torch.randint(0, greatest, shape, generator=generator).to(device, kind)
