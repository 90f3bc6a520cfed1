"""What NVIDIA's own clients, unmodified, see of the OCR system: the same over gRPC and HTTP, blocking and asyncio."""

import asyncio
import io
from pathlib import Path

import numpy as np
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http.aio as http_aio
from PIL import Image

from behaviour import both, clients_of
from checks import CHECKS, check, read_flags, run

CHECKS.clear()
SAMPLES = Path(__file__).resolve().parents[2] / "model_repository/.samples"
PICTURE = np.expand_dims(np.fromfile(SAMPLES / "words.jpg", np.uint8), 0)
WORDS = (SAMPLES / "words.txt").read_text().split()


def read(client, picture):
    """-> what the ensemble answers, as the published client reads it"""
    answer = client.infer("ensemble_model", {"input_image": picture})
    return answer.as_numpy("recognized_text").astype(str)


@check
def words(clients):
    """one call reads the words of a picture, in reading order"""
    for c in both(clients):
        got = read(c, PICTURE)
        assert got.shape == (len(WORDS),) and got.tolist() == WORDS, got


@check
def equals_its_steps(clients):
    """the OCR ensemble gives byte for byte what its steps give one after the other"""
    for c in both(clients):
        square = c.infer("detection_preprocessing", {"detection_preprocessing_input": PICTURE})
        square = square.as_numpy("detection_preprocessing_output")
        maps = c.infer("text_detection", {"input_images:0": square})
        tensors = [
            maps.as_numpy("feature_fusion/Conv_7/Sigmoid:0"),
            maps.as_numpy("feature_fusion/concat_3:0"),
            square,
        ]
        named = {f"detection_postprocessing_input_{i + 1}": x for i, x in enumerate(tensors)}
        crops = c.infer("detection_postprocessing", named).as_numpy("detection_postprocessing_output")
        assert crops.shape == (len(WORDS), 1, 32, 100), crops.shape
        columns = c.infer("text_recognition", {"INPUT__0": crops}).as_numpy("OUTPUT__0")
        last = c.infer("recognition_postprocessing", {"recognition_postprocessing_input": columns})
        last = last.as_numpy("recognition_postprocessing_output").astype(str)
        assert last.tolist() == read(c, PICTURE).tolist(), last


@check
def no_words(clients):
    """a picture without words gives an empty tensor"""
    file = io.BytesIO()
    Image.new("RGB", (96, 64), "white").save(file, "PNG")
    for c in both(clients):
        got = read(c, np.frombuffer(file.getvalue(), np.uint8)[None])
        assert got.shape == (0,), got


@check
def no_picture(clients):
    """what is no picture is refused with the reason, and the next request is served"""
    wanted = "input 'detection_preprocessing_input': 4 bytes that are no JPEG or PNG file"
    for protocol, c in clients.items():
        error = c.error("ensemble_model", {"input_image": np.zeros((1, 4), np.uint8)})
        assert error.message() == f"in ensemble 'ensemble_model', {wanted}", error.message()
        status = {"grpc": "StatusCode.INVALID_ARGUMENT", "http": "400"}[protocol]
        assert error.status() == status, error.status()
        assert read(c, PICTURE).tolist() == WORDS


@check
def asyncio_clients(clients):
    """the asyncio clients read the same words, several requests at a time"""

    async def ask(module, url):
        tensor = module.InferInput("input_image", PICTURE.shape, "UINT8")
        tensor.set_data_from_numpy(PICTURE)
        async with module.InferenceServerClient(url) as client:
            answers = await asyncio.gather(*[client.infer("ensemble_model", [tensor]) for _ in range(4)])
        for answer in answers:
            assert answer.as_numpy("recognized_text").astype(str).tolist() == WORDS

    asyncio.run(ask(grpc_aio, clients["grpc"].url))
    asyncio.run(ask(http_aio, clients["http"].url))


if __name__ == "__main__":
    run(clients_of(read_flags("grpc", "http")))
