"""Writes the face restoration models from a checkpoint: ONNX to model_repository/, TorchScript to
model_repository/.variants/torchscript/, each with its config.pbtxt."""

import argparse
import warnings
from pathlib import Path

import torch

from configs import ENSEMBLE, MODELS, ensemble_config, model_config
from network import GFPGAN
from stages import AnySize, PostProcess, PreProcess

REPOSITORY = Path(__file__).resolve().parent.parent
TORCHSCRIPT = REPOSITORY / ".variants" / "torchscript"
OPSET = 17


def modules(checkpoint):
    """name -> (module, an input of the size it is traced with)"""
    network = GFPGAN()
    network.load_state_dict(torch.load(checkpoint))
    del network.to_rgb  # only the training loss uses these
    network.eval().requires_grad_(False)
    torch.manual_seed(0)
    image = torch.randint(0, 256, (256, 256, 3), dtype=torch.uint8)
    picture = torch.rand(1, 3, 256, 256) * 2 - 1
    return {
        "pre_gfpgan": (PreProcess(), image),
        "infer_face_restoration_v2.1": (AnySize(network), picture),
        "post_gfpgan": (PostProcess(), picture),
        "gfpgan": (network, picture),
    }


def free_axes(name):
    """The axes that config.pbtxt declares as -1."""
    axes = {}
    for tensor, (_, dims) in zip(("input__0", "output__0"), MODELS[name]):
        free = [i for i, dim in enumerate(dims.split(", ")) if dim == "-1"]
        axes[tensor] = dict(zip(free, ("height", "width")))
    return axes


def write_onnx(name, module, example, path):
    torch.onnx.export(
        module,
        (example,),
        str(path),
        opset_version=OPSET,
        input_names=["input__0"],
        output_names=["output__0"],
        dynamic_axes=free_axes(name),
    )


def write_torchscript(module, example, path):
    """Saves a trace without its debug records, which name the source files of this machine."""
    torch.jit.save(torch.jit.trace(module, example), str(path))
    reader = torch._C.PyTorchFileReader(str(path))
    names = [name for name in reader.get_all_records() if not name.endswith(".debug_pkl")]
    records = {name: reader.get_record(name) for name in names if name != "version"}
    writer = torch._C.PyTorchFileWriter(str(path))  # adds the version itself
    for name, content in records.items():
        writer.write_record(name, content, len(content))
    writer.write_end_of_file()


def model_folder(repository, name, config):
    folder = repository / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "config.pbtxt").write_text(config)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True)
    checkpoint = parser.parse_args().checkpoint
    # upfirdn2d turns the network's fixed sizes into integers on purpose.
    warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
    torch.set_num_threads(1)
    for name, (module, example) in modules(checkpoint).items():
        folder = model_folder(REPOSITORY, name, model_config(name, "onnxruntime_onnx"))
        write_onnx(name, module, example, folder / "model.onnx")
        folder = model_folder(TORCHSCRIPT, name, model_config(name, "pytorch_libtorch"))
        write_torchscript(module, example, folder / "model.pt")
    for repository in (REPOSITORY, TORCHSCRIPT):
        # An ensemble's version directory is empty; the file keeps it in git.
        (model_folder(repository, ENSEMBLE, ensemble_config()) / ".gitkeep").touch()


if __name__ == "__main__":
    main()
