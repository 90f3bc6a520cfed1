"""Writes the face restoration models from a checkpoint: ONNX to model_repository/, TorchScript to
model_repository/.variants/torchscript/, each with its config.pbtxt."""

import argparse
import warnings
from pathlib import Path
from zipfile import ZipFile

import torch

from configs import (
    FIRST,
    MODELS,
    SECOND,
    ensemble_config,
    ensemble_name,
    model_config,
    network_name,
)
from network import GFPGAN
from stages import AnySize, PostProcess, PreProcess

REPOSITORY = Path(__file__).resolve().parent.parent
TORCHSCRIPT = REPOSITORY / ".variants" / "torchscript"
OPSET = 17


def load_network(checkpoint):
    """A network to run, from a checkpoint of train.py or from a TorchScript file."""
    network = GFPGAN()
    del network.to_rgb  # only the training loss uses these
    if is_torchscript(checkpoint):
        weights = torch.jit.load(str(checkpoint)).state_dict()
    else:
        weights = torch.load(checkpoint)
    # Of infer_face_restoration, the network is a part.
    weights = {name.removeprefix("network."): value for name, value in weights.items()}
    weights = {name: value for name, value in weights.items() if not name.startswith("to_rgb.")}
    network.load_state_dict(weights)
    return network.eval().requires_grad_(False)


def is_torchscript(path):
    with ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def script_path(name):
    return TORCHSCRIPT / name / "1" / "model.pt"


def modules(first=None, second=None):
    """name -> (module, an input of the size it is traced with)

    first, second: checkpoints of the two versions; the committed TorchScript files hold the same.
    """
    network = load_network(first or script_path(network_name(FIRST)))
    other = load_network(second or script_path(network_name(SECOND)))
    torch.manual_seed(0)
    image = torch.randint(0, 256, (256, 256, 3), dtype=torch.uint8)
    picture = torch.rand(1, 3, 256, 256) * 2 - 1
    return {
        "pre_gfpgan": (PreProcess(), image),
        network_name(FIRST): (AnySize(network), picture),
        "post_gfpgan": (PostProcess(), picture),
        "gfpgan": (network, picture),
        network_name(SECOND): (AnySize(other), picture),
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
    parser.add_argument("--first", help="checkpoint of v2.1; left out, the committed weights")
    parser.add_argument("--second", help="checkpoint of v2.2; left out, the committed weights")
    args = parser.parse_args()
    # upfirdn2d turns the network's fixed sizes into integers on purpose.
    warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
    torch.set_num_threads(1)
    for name, (module, example) in modules(args.first, args.second).items():
        if name != network_name(SECOND):
            folder = model_folder(REPOSITORY, name, model_config(name, "onnxruntime_onnx"))
            write_onnx(name, module, example, folder / "model.onnx")
        folder = model_folder(TORCHSCRIPT, name, model_config(name, "pytorch_libtorch"))
        write_torchscript(module, example, folder / "model.pt")
    for repository, version in ((REPOSITORY, FIRST), (TORCHSCRIPT, FIRST), (TORCHSCRIPT, SECOND)):
        # An ensemble's version directory is empty; the file keeps it in git.
        folder = model_folder(repository, ensemble_name(version), ensemble_config(version))
        (folder / ".gitkeep").touch()


if __name__ == "__main__":
    main()
