"""Gets the networks of read-text from PyPI: python get_networks.py [FOLDER], by default models, beside this file.

They are those of PaddleOCR (Apache 2.0), in the wheel that networks.txt names, which is not installed.
"""

import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).parent
NETWORKS = {
    "line_finder": "ch_PP-OCRv4_det_infer",
    "line_direction": "ch_ppocr_mobile_v2.0_cls_infer",
    "line_reader": "ch_PP-OCRv4_rec_infer",
}


def main(folder):
    with tempfile.TemporaryDirectory() as download:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        wanted = ["--require-hashes", f"--requirement={HERE / 'networks.txt'}"]
        subprocess.run([*pip, f"--dest={download}", *wanted], check=True)
        (file,) = pathlib.Path(download).iterdir()
        with zipfile.ZipFile(file) as wheel:
            for name, network in NETWORKS.items():
                unpack(wheel.read(f"rapidocr_onnxruntime/models/{network}.onnx"), folder / name / "1")


def unpack(model, version):
    version.mkdir(parents=True, exist_ok=True)
    (version / "model.onnx").write_bytes(model)
    characters = metadata(model).get("character")
    if characters is not None:  # a character a line; the network has a space behind them
        (version / "characters.txt").write_text("\n".join([*characters.splitlines(), " "]) + "\n", "utf-8")


def metadata(model):
    """-> the texts that an ONNX file has beside its graph: field 14 of the message, each with a key and a value"""
    pairs = [[text for _, text in fields(entry)] for number, entry in fields(model) if number == 14]
    return {key.decode(): value.decode() for key, value in pairs}


def fields(message):
    """-> number and bytes of each field of a protobuf message that has a length"""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        if tag & 7 == 2:
            length, at = varint(message, at)
            yield tag >> 3, message[at : at + length]
            at += length
        elif tag & 7 == 0:
            _, at = varint(message, at)
        else:
            at += 8 if tag & 7 == 1 else 4


def varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "models"))
