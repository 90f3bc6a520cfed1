"""Compares the exported models with the originals, the way the published conversion is reported,
and pre and post with numpy at sizes that nobody traced."""

import argparse
import time

import numpy as np
import onnxruntime
import torch

from configs import FIRST, SECOND, network_name
from export import REPOSITORY, modules, script_path

SIZES = [(37, 53), (1, 1), (511, 300), (256, 256), (2, 1000)]


def session(name):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    path = str(REPOSITORY / name / "1" / "model.onnx")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(onnx, x):
    return onnx.run(["output__0"], {"input__0": x})[0]


def script(name):
    return torch.jit.load(str(script_path(name)))


def compare(label, want, got):
    """Prints the greatest difference and the count outside rtol = atol = 1e-5."""
    greatest = np.abs(want - got).max()
    outside = int((~np.isclose(got, want, rtol=1e-5, atol=1e-5)).sum())
    print(f"{label}: greatest difference {greatest:.2e}, {outside} of {want.size} outside 1e-5")
    return greatest, outside


def numpy_pre(image):
    x = image[:, :, ::-1].astype(np.float64) / 255
    return ((x - 0.5) / 0.5).transpose(2, 0, 1)[None]


def numpy_post(x):
    x = np.clip(x[0].transpose(1, 2, 0), np.float32(-1), np.float32(1))
    return ((x + np.float32(1)) / np.float32(2) * np.float32(255)).astype(np.uint8)[:, :, ::-1]


def check_network(originals):
    _, x = originals["gfpgan"]
    want = originals["gfpgan"][0](x).numpy()
    greatest, outside = compare("gfpgan, TorchScript", want, script("gfpgan")(x).numpy())
    assert greatest <= 3.15e-4 and outside <= 171, "worse than the published conversion"
    compare("gfpgan, ONNX", want, run(session("gfpgan"), x.numpy()))
    for name in map(network_name, (FIRST, SECOND)):
        traced = script(name)
        for size in SIZES:
            x = torch.rand(1, 3, *size) * 2 - 1
            want = originals[name][0](x).numpy()
            greatest, outside = compare(f"{name} {size}, TorchScript", want, traced(x).numpy())
            assert greatest <= 3.15e-4 and outside <= 171, "worse than the published conversion"
            if name == network_name(FIRST):
                greatest, _ = compare(f"{name} {size}, ONNX", want, run(session(name), x.numpy()))
                assert greatest < 1e-3


def check_stages():
    rng = np.random.default_rng(0)
    pre, post = session("pre_gfpgan"), session("post_gfpgan")
    pre_pt, post_pt = script("pre_gfpgan"), script("post_gfpgan")
    for h, w in SIZES:
        image = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
        for out in (run(pre, image), pre_pt(torch.from_numpy(image)).numpy()):
            assert out.shape == (1, 3, h, w) and np.abs(out - numpy_pre(image)).max() < 1e-6
        x = rng.uniform(-1.3, 1.3, (1, 3, h, w)).astype(np.float32)
        for out in (run(post, x), post_pt(torch.from_numpy(x)).numpy()):
            assert out.shape == (h, w, 3) and np.array_equal(out, numpy_post(x))
    print(f"pre within 1e-6 and post exact, ONNX and TorchScript, at {SIZES}")


def time_network():
    onnx, x = session("gfpgan"), np.zeros((1, 3, 256, 256), np.float32)
    times = []
    for _ in range(12):
        started = time.process_time()
        run(onnx, x)
        times.append(time.process_time() - started)
    print(f"gfpgan, ONNX, one thread: {1000 * np.median(times):.0f} ms of processor time")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", help="checkpoint of v2.1; left out, the committed weights")
    parser.add_argument("--second", help="checkpoint of v2.2; left out, the committed weights")
    args = parser.parse_args()
    torch.set_num_threads(1)
    check_network(modules(args.first, args.second))
    check_stages()
    time_network()


if __name__ == "__main__":
    main()
