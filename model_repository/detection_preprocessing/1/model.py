"""The bytes of a JPEG or PNG file -> its middle square, RGB, for the detector."""

import io

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image, ImageOps, UnidentifiedImageError

GRAIN = 32  # the detector halves a side five times
MAX_SIDE = 1024  # pixels; larger squares are made smaller
MAX_PIXELS = 1 << 26  # of a file, before it is decoded
INPUT, OUTPUT = "detection_preprocessing_input", "detection_preprocessing_output"


class TritonPythonModel:
    def execute(self, requests):
        return [respond(request) for request in requests]


def respond(request):
    files = pb_utils.get_input_tensor_by_name(request, INPUT).as_numpy()
    try:
        squares = [to_square(decode(file.tobytes())) for file in files]
        if len({square.shape for square in squares}) != 1:
            raise ValueError(
                f"input '{INPUT}': the pictures of a batch must give squares of one size,"
                f" got sides {[len(square) for square in squares]}"
            )
    except ValueError as error:
        refused = pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG)
        return pb_utils.InferenceResponse(output_tensors=[], error=refused)
    return pb_utils.InferenceResponse([pb_utils.Tensor(OUTPUT, np.stack(squares))])


def decode(file):
    """-> an RGB picture, upright, without transparency. Throws ValueError if there is none."""
    try:
        image = Image.open(io.BytesIO(file), formats=("JPEG", "PNG"))
    except UnidentifiedImageError:
        raise ValueError(f"input '{INPUT}': {len(file)} bytes that are no JPEG or PNG file") from None
    except Exception as error:  # a broken header raises whatever the format's reader met
        raise ValueError(f"input '{INPUT}': cannot read the picture: {error}") from None
    if image.width * image.height > MAX_PIXELS:
        raise ValueError(
            f"input '{INPUT}': a picture of {image.width} x {image.height} pixels,"
            f" want at most {MAX_PIXELS} pixels"
        )
    try:
        # A JPEG decoder can skip what the resize would throw away.
        image.draft("RGB", (MAX_SIDE, MAX_SIDE))
        return to_rgb(ImageOps.exif_transpose(image))
    except Exception as error:
        raise ValueError(f"input '{INPUT}': cannot decode the picture: {error}") from None


def to_rgb(image):
    if image.mode.startswith("I"):  # 16 bits of grey
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("LA", "RGBA") or "transparency" in image.info:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image)
    return image.convert("RGB")


def to_square(image):
    """-> FP32 [S,S,3], 0 to 255, S a multiple of GRAIN and at most MAX_SIDE"""
    side = min(image.size) // GRAIN * GRAIN
    if side == 0:
        raise ValueError(
            f"input '{INPUT}': a picture of {image.width} x {image.height} pixels,"
            f" want at least {GRAIN} x {GRAIN}"
        )
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = image.crop((left, top, left + side, top + side))
    if side > MAX_SIDE:
        square = square.resize((MAX_SIDE, MAX_SIDE), Image.Resampling.BILINEAR)
    return np.asarray(square, np.float32)
