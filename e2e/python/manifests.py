"""The two systems served from manifests, against the same served from their model repository: the same configurations and bytes."""

import argparse
import os

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from PIL import Image

from checks import check, run

MODELS = (
    "pre_gfpgan",
    "infer_face_restoration_v2.1",
    "post_gfpgan",
    "ens_face_restoration_v2.1",
    "detection_preprocessing",
    "text_detection",
    "detection_postprocessing",
    "text_recognition",
    "recognition_postprocessing",
    "ensemble_model",
)


class Env:
    def __init__(self, flags):
        self.flags = flags
        self.ours = (grpc, grpc.InferenceServerClient(flags.grpc)), (http, http.InferenceServerClient(flags.http))
        self.theirs = (
            (grpc, grpc.InferenceServerClient(flags.other_grpc)),
            (http, http.InferenceServerClient(flags.other_http)),
        )

    def same(self, model, array, source, target):
        got = []
        for module, client in (*self.ours, *self.theirs):
            tensor = module.InferInput(source, array.shape, "UINT8")
            tensor.set_data_from_numpy(array)
            got.append(client.infer(model, [tensor]).as_numpy(target))
        for other in got[1:]:
            assert other.dtype == got[0].dtype and other.shape == got[0].shape, (other.shape, got[0].shape)
            assert np.array_equal(other, got[0]), "other values"
        return got[0]

    def sample(self, name):
        return os.path.join(self.flags.samples, name)


@check
def configurations(env):
    """every model and ensemble has the configuration that it has from the repository"""
    (_, ours), (_, theirs) = env.ours[1], env.theirs[1]
    for model in MODELS:
        assert ours.get_model_config(model) == theirs.get_model_config(model), (
            model,
            ours.get_model_config(model),
            theirs.get_model_config(model),
        )
        assert ours.get_model_metadata(model) == theirs.get_model_metadata(model), model


@check
def face(env):
    """the face system restores a picture to the same bytes"""
    picture = np.asarray(Image.open(env.sample("astronaut-degraded.png")).convert("RGB"))[:, :, ::-1]
    restored = env.same("ens_face_restoration_v2.1", np.ascontiguousarray(picture), "raw_image", "image_out")
    assert restored.ndim == 3


@check
def words(env):
    """the OCR system reads the same words"""
    file = np.expand_dims(np.fromfile(env.sample("words.jpg"), np.uint8), axis=0)
    found = env.same("ensemble_model", file, "input_image", "recognized_text")
    with open(env.sample("words.txt")) as wanted:
        assert found.astype(str).tolist() == wanted.read().split(), found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--grpc", required=True)
    parser.add_argument("--http", required=True)
    parser.add_argument("--other-grpc", required=True)
    parser.add_argument("--other-http", required=True)
    parser.add_argument("--samples", required=True, help="the folder of the pictures")
    run(Env(parser.parse_args()))
