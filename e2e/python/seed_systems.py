"""The two published systems as NVIDIA's four clients use them: models loaded over the API or found, a face restored, a second network added
beside the first, a picture's words read. All four clients must get the same bytes, and so must every way to serve: `--results` is a folder that all of them share. The second network is copied from the
folder `--more` into `--repository`, which is served; with `--polls` the server finds by itself what is there.
"""

import os
import shutil

import numpy as np
from PIL import Image
from tritonclient.utils import np_to_triton_dtype

from checks import check, read_flags, run
from clients import open_clients
from waiting import until

FACE = ("pre_gfpgan", "infer_face_restoration_v2.1", "post_gfpgan", "ens_face_restoration_v2.1")
SECOND = ("infer_face_restoration_v2.2", "ens_face_restoration_v2.2")


class Env:
    def __init__(self, flags):
        self.flags = flags
        self.clients = open_clients(flags)

    def sample(self, name):
        return os.path.join(self.flags.samples, name)

    def load(self, *models):
        """Each by the next of the clients, or waits until the server has found them itself."""
        for (_, client), model in zip(list(self.clients.values()) * 2, models):
            if self.flags.polls:
                until(f"{model} is ready", lambda model=model: self.are_ready(model))
            else:
                client.load_model(model)
            assert self.are_ready(model), model

    def are_ready(self, model):
        return all(client.is_model_ready(model) for _, client in self.clients.values())

    def infer(self, model, array, source, target):
        """What all clients get for the array; it must be the same."""
        got = {}
        for name, (module, client) in self.clients.items():
            tensor = module.InferInput(source, array.shape, np_to_triton_dtype(array.dtype))
            tensor.set_data_from_numpy(array)
            got[name] = client.infer(model, [tensor]).as_numpy(target)
        first = got["grpc"]
        for name, other in got.items():
            assert other.dtype == first.dtype and other.shape == first.shape, (name, other.shape, first.shape)
            assert np.array_equal(other, first), f"{name} gets other values than grpc"
        return first

    def same_everywhere(self, name, array):
        """Keeps the result of the first way to serve, and compares that of the others with it."""
        path = os.path.join(self.flags.results, f"{name}.npy")
        if not os.path.exists(path):
            np.save(path, array)
        before = np.load(path)
        assert before.dtype == array.dtype and np.array_equal(before, array), f"{name} differs from the way before"


def pixels(path):
    """[H,W,3] in BGR, as OpenCV reads it."""
    return np.ascontiguousarray(np.asarray(Image.open(path).convert("RGB"))[:, :, ::-1])


def error_of(image, wanted):
    return np.square(image.astype(np.float64) - wanted).mean()


def restore(env, version):
    picture = pixels(env.sample("astronaut-degraded.png"))
    restored = env.infer(f"ens_face_restoration_{version}", picture, "raw_image", "image_out")
    clean = pixels(env.sample("astronaut-clean.png"))
    assert error_of(restored, clean) < error_of(picture, clean)
    env.same_everywhere(version, restored)
    return restored


def read_words(env):
    """As the published client does, with the bytes of an image file."""
    file = np.fromfile(env.sample("words.jpg"), np.uint8)[np.newaxis]
    found = env.infer("ensemble_model", file, "input_image", "recognized_text")
    with open(env.sample("words.txt")) as wanted:
        assert found.astype(str).tolist() == wanted.read().split(), found
    env.same_everywhere("words", found.astype("S"))


@check
def face(env):
    """the four models of the face system restore a picture; where the API loads them, they are not there before"""
    assert env.flags.polls or not any(client.is_model_ready(model) for _, client in env.clients.values() for model in FACE)
    env.load(*FACE)
    restore(env, "v2.1")


@check
def second_network(env):
    """a second network is added with an ensemble of its own, and shares what is before and behind it"""
    for model in SECOND:
        shutil.copytree(os.path.join(env.flags.more, model), os.path.join(env.flags.repository, model))
    env.load(*SECOND)
    _, client = env.clients["http"]

    def served(model):
        return client.get_inference_statistics(model)["model_stats"][0]["inference_stats"]["success"]["count"]

    models = ("pre_gfpgan", *(f"infer_face_restoration_{v}" for v in ("v2.1", "v2.2")), "post_gfpgan")
    before = [served(model) for model in models]
    first, second = restore(env, "v2.1"), restore(env, "v2.2")
    assert not np.array_equal(first, second)
    assert [served(model) - then for model, then in zip(models, before)] == [8, 4, 4, 8]


@check
def words(env):
    """the OCR system reads the words of a picture file"""
    # An ensemble brings its models.
    env.load("ensemble_model")
    read_words(env)


if __name__ == "__main__":
    run(Env(read_flags("grpc", "http", "samples", "repository", "more", "results", optional=("polls",))))
