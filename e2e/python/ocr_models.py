"""The model.py files of the OCR system, called as Triton's Python backend calls them."""

import io
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "model_repository/.training/ocr"))

from checks import check, run  # noqa: E402
from models import load_model  # noqa: E402

PRE = load_model("detection_preprocessing")
POST = load_model("detection_postprocessing")
READ = load_model("recognition_postprocessing")
SEED = 7


def execute(model, *requests):
    """Each request: the arrays of its inputs, by name. -> an array or the text of an error, each."""
    utils = model.pb_utils
    instance = model.TritonPythonModel()
    sent = [
        utils.InferenceRequest([utils.Tensor(name, array) for name, array in request.items()])
        for request in requests
    ]
    answers = []
    for response in instance.execute(sent):
        if response.has_error():
            assert response.error().code() == utils.TritonError.INVALID_ARG  # the client's fault
            answers.append(response.error().message())
        else:
            [tensor] = response.output_tensors()
            answers.append(tensor.as_numpy())
    assert len(answers) == len(requests)
    return answers


def file_of(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def preprocess(*files):
    """One request a file."""
    batches = [{PRE.INPUT: np.frombuffer(file, np.uint8)[None]} for file in files]
    return execute(PRE, *batches)


def noise(height, width):
    rng = np.random.default_rng(SEED)
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def bomb(width, height):
    """A PNG file that promises a picture of this size and holds nothing."""

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@check
def middle_square():
    """a PNG gives its middle square as FP32 RGB [1,S,S,3], S a multiple of 32"""
    pixels = noise(71, 110)
    [square] = preprocess(file_of(Image.fromarray(pixels)))
    assert square.dtype == np.float32 and square.shape == (1, 64, 64, 3), square.shape
    assert np.array_equal(square[0], pixels[3:67, 23:87].astype(np.float32))


@check
def jpeg():
    """a JPEG gives what its decoder gives"""
    file = file_of(Image.fromarray(noise(64, 96)), "JPEG", quality=90)
    wanted = np.asarray(Image.open(io.BytesIO(file)))[:, 16:80]
    [square] = preprocess(file)
    assert np.array_equal(square[0], wanted.astype(np.float32))


@check
def bounded_size():
    """a picture larger than 1024 x 1024 is made smaller, JPEG and PNG alike"""
    image = Image.new("RGB", (2500, 2100), (10, 200, 30))
    for square in preprocess(file_of(image), file_of(image, "JPEG")):
        assert square.shape == (1, 1024, 1024, 3), square.shape
        assert np.abs(square[0, 500, 500] - [10, 200, 30]).max() < 4


@check
def every_kind_of_picture():
    """grey, palette, bilevel, 16 bits, CMYK and transparency come out as RGB; paper is white"""
    clear = Image.new("RGBA", (32, 32), (0, 0, 0, 0))
    deep = Image.fromarray(np.full((32, 32), 0x8040, np.uint16))
    black = Image.new("RGB", (32, 32))
    wanted = {
        file_of(Image.new("L", (32, 32), 90)): 90,
        file_of(Image.new("RGB", (32, 32), (90, 90, 90)).quantize()): 90,
        file_of(Image.new("1", (32, 32), 1)): 255,
        file_of(deep): 0x80,
        file_of(Image.new("CMYK", (32, 32), (0, 0, 0, 0)), "JPEG"): 255,
        file_of(clear): 255,
        file_of(black, transparency=(0, 0, 0)): 255,
    }
    for square, (file, value) in zip(preprocess(*wanted), wanted.items()):
        assert isinstance(square, np.ndarray), square
        assert square.shape == (1, 32, 32, 3) and (square == value).all(), (value, square[0, 0, 0])


@check
def upright():
    """a photograph that says that it lies on its side is turned upright"""
    image = Image.new("RGB", (64, 64), "white")
    ImageDraw.Draw(image).rectangle((0, 0, 63, 15), "black")
    turned = image.transpose(Image.Transpose.ROTATE_90)  # what the camera stored
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise to see it
    [square] = preprocess(file_of(turned, "JPEG", exif=exif, quality=95))
    assert square[0, :12].max() < 40 and square[0, 24:].min() > 215


@check
def bad_pictures():
    """what is no picture is an error of its own request, which says why; the others are answered"""
    good = file_of(Image.fromarray(noise(40, 40)))
    bad = {
        b"no picture at all": "17 bytes that are no JPEG or PNG file",
        b"": "0 bytes that are no JPEG or PNG file",
        good[: len(good) // 2]: "cannot decode the picture",
        file_of(Image.new("RGB", (32, 31))): "a picture of 32 x 31 pixels, want at least 32 x 32",
        file_of(Image.new("RGB", (64, 64)), "GIF"): "no JPEG or PNG file",
        bomb(9000, 9000): "a picture of 9000 x 9000 pixels, want at most 67108864 pixels",
        bomb(60000, 60000): "cannot read the picture",
    }
    answers = preprocess(good, *bad, good)
    for answer in (answers[0], answers[-1]):
        assert isinstance(answer, np.ndarray)
    for answer, text in zip(answers[1:-1], bad.values()):
        assert isinstance(answer, str) and text in answer, (text, answer)
        assert answer.startswith(f"input '{PRE.INPUT}': "), answer
        assert "0x" not in answer, answer


@check
def damaged_pictures():
    """a damaged file is an error or a picture, never an exception"""
    rng = np.random.default_rng(SEED)
    image = Image.fromarray(noise(48, 48))
    for kind in ("PNG", "JPEG"):
        whole = np.frombuffer(file_of(image, kind), np.uint8)
        for _ in range(300):
            file = whole.copy()
            places = rng.integers(len(file), size=rng.integers(1, 6))
            file[places] = rng.integers(0, 256, len(places))
            [answer] = execute(PRE, {PRE.INPUT: file[None, : rng.integers(len(file) + 1)]})
            assert isinstance(answer, str) or answer.shape[3] == 3


@check
def batches_of_pictures():
    """a batch of pictures of one size is a batch of squares; of two sizes, an error"""
    files = [file_of(Image.new("L", size, 7)) for size in ((32, 40), (40, 32), (64, 64))]
    longest = max(map(len, files))
    rows = np.stack([np.frombuffer(file.ljust(longest, b"\0"), np.uint8) for file in files])
    same, different = execute(PRE, {PRE.INPUT: rows[:2]}, {PRE.INPUT: rows})
    assert same.shape == (2, 32, 32, 3)
    assert "squares of one size, got sides [32, 32, 64]" in different, different


def maps_of(boxes, side=256):
    """Score and geometry as a perfect detector gives them."""
    cells = side // POST.STRIDE
    y, x = np.mgrid[:cells, :cells] * float(POST.STRIDE)
    score, geometry = np.zeros((cells, cells, 1), np.float32), np.zeros((cells, cells, 5), np.float32)
    for cx, cy, w, h, angle in boxes:
        along = (x - cx) * np.cos(angle) - (y - cy) * np.sin(angle)
        down = (x - cx) * np.sin(angle) + (y - cy) * np.cos(angle)
        inside = (abs(along) < w / 2 - h / 5) & (abs(down) < h * 0.3)
        score[inside] = 0.9
        edges = (down + h / 2, w / 2 - along, h / 2 - down, along + w / 2, np.full_like(x, angle))
        geometry[inside] = np.stack(edges, axis=2)[inside]
    return score, geometry


def postprocess(score, geometry, picture):
    tensors = (score[None], geometry[None], picture[None])
    names = (f"{POST.PREFIX}input_{i}" for i in (1, 2, 3))
    [answer] = execute(POST, dict(zip(names, tensors)))
    return answer


PAPER = np.full((256, 256, 3), 255, np.float32)
BOXES = np.array([[60, 50, 90, 30, 0.2], [180, 55, 100, 24, -0.25], [128, 180, 200, 60, 0.0]])


@check
def words_found():
    """each word of a perfect map is found once, where it is, line by line from the left"""
    found = POST.find_words(*maps_of(BOXES[[2, 1, 0]]))
    assert found.shape == (3, 5), found
    assert np.abs(found - BOXES).max() < 0.01, found
    apart = BOXES.copy()
    apart[:2, 1] += [30, 0]  # the left one is now half a height lower: a line of its own
    assert np.abs(POST.find_words(*maps_of(apart)) - apart[[1, 0, 2]]).max() < 0.01


@check
def rough_maps():
    """boxes that differ from cell to cell make one word"""
    rng = np.random.default_rng(SEED)
    score, geometry = maps_of(BOXES)
    geometry[:, :, :4] *= rng.uniform(0.9, 1.1, geometry[:, :, :4].shape)
    geometry[:, :, 4] += rng.normal(0, 0.03, geometry.shape[:2])
    found = POST.find_words(score, geometry)
    assert found.shape == (3, 5), found
    assert min(POST.iou(want, have[None])[0] for want, have in zip(BOXES, found)) > 0.9


@check
def overlap_of_turned_boxes():
    """intersection over union of turned boxes is what counting points gives"""
    rng = np.random.default_rng(SEED)
    points = rng.uniform(-40, 40, (40_000, 2))

    def holds(box):
        x, y = (points - box[:2]).T
        along, down = x * np.cos(box[4]) - y * np.sin(box[4]), x * np.sin(box[4]) + y * np.cos(box[4])
        return (abs(along) < box[2] / 2) & (abs(down) < box[3] / 2)

    boxes = np.column_stack(
        [rng.uniform(-12, 12, (60, 2)), rng.uniform(4, 30, (60, 2)), rng.uniform(-2, 2, 60)]
    )
    for box in boxes[:10]:
        got = POST.iou(box, boxes)
        inside = holds(box)
        for other, value in zip(boxes, got):
            both, either = (inside & holds(other)).sum(), (inside | holds(other)).sum()
            assert abs(value - both / either) < 0.04, (box, other, value, both / either)
        turned = box * [1, 1, 1, 1, 0] + [0, 0, 0, 0, box[4] + np.pi]
        equal = POST.iou(box, np.array([box, turned, box + [100, 0, 0, 0, 0]]))
        assert np.abs(equal - [1, 1, 0]).max() < 1e-9, equal


@check
def crops():
    """a turned word is cut out upright: FP32 [N,1,32,100] in [-1,1]"""
    box = np.array([[128, 120, 120, 40, 0.26]])
    left_half = [[128 - 30 * np.cos(0.26), 120 + 30 * np.sin(0.26), 60, 40, 0.26]]
    image = Image.new("RGB", (256, 256), "white")
    ImageDraw.Draw(image).polygon([tuple(p) for p in POST.corners(np.array(left_half))[0]], "black")
    crop = postprocess(*maps_of(box), np.asarray(image, np.float32))
    assert crop.shape == (1, 1, 32, 100) and crop.dtype == np.float32
    assert crop[0, 0, 2:-2, 2:47].max() < -0.9 and crop[0, 0, :, 53:].min() > 0.9
    assert crop.min() >= -1 and crop.max() <= 1


@check
def no_words():
    """a picture without words gives an empty tensor"""
    crop = postprocess(*maps_of([]), PAPER)
    assert crop.shape == (0, 1, 32, 100) and crop.dtype == np.float32


@check
def many_words():
    """of more words than the next step takes in a batch, 256 come back"""
    centres = [(x, y) for x in range(12, 756, 24) for y in range(8, 760, 16)]
    boxes = [(x, y, 20, 12, 0) for x, y in centres]
    crop = postprocess(*maps_of(boxes, 768), np.full((768, 768, 3), 255, np.float32))
    assert len(boxes) > 256 and crop.shape == (256, 1, 32, 100), crop.shape


@check
def hostile_maps():
    """whatever a detector answers, there are at most 256 crops, all of them in [-1,1]"""
    rng = np.random.default_rng(SEED)
    for scale in (1, 30, 1e30):
        score = rng.uniform(-1, 2, (64, 64, 1)).astype(np.float32)
        geometry = (rng.normal(0, 1, (64, 64, 5)) * scale).astype(np.float32)
        geometry[rng.uniform(size=(64, 64)) < 0.1] = np.nan
        geometry[rng.uniform(size=(64, 64)) < 0.1] = np.inf
        for values in (geometry, np.abs(geometry)):
            crop = postprocess(score, values, rng.normal(128, 400, (256, 256, 3)).astype(np.float32))
            assert len(crop) <= 256 and np.isfinite(crop).all() and np.abs(crop).max(initial=0) <= 1


@check
def one_picture_a_request():
    """a batch of pictures is refused by its own request: their words could not be told apart"""
    score, geometry = maps_of(BOXES)
    names = [f"{POST.PREFIX}input_{i}" for i in (1, 2, 3)]
    one = dict(zip(names, (score[None], geometry[None], PAPER[None])))
    two = {name: np.concatenate([array, array]) for name, array in one.items()}
    first, refused, last = execute(POST, one, two, one)
    assert first.shape == last.shape == (3, 1, 32, 100)
    assert "got a batch of 2, want one picture a request" in refused, refused


def columns_of(*paths):
    """[N,26,37] whose likeliest classes are those of paths, then blanks."""
    columns = np.zeros((len(paths), 26, 37), np.float32)
    for row, path in zip(columns, paths):
        padded = list(path) + [0] * (26 - len(path))
        row[np.arange(26), padded] = 1
    return columns


@check
def greedy_path():
    """repeats are merged, blanks dropped, a letter twice needs a blank between; BYTES of rank 1"""
    a, b, zero = 11, 12, 1
    columns = columns_of([a, a, 0, a, b, b], [], [0, zero, 36, 36, 0, 0, 36], [a] * 26)
    [words] = execute(READ, {READ.INPUT: columns})
    assert words.dtype == np.object_ and list(words) == [b"aab", b"", b"0zz", b"a"], words


@check
def nothing_to_read():
    """no crops are no words"""
    some, none = execute(READ, {READ.INPUT: columns_of([11])}, {READ.INPUT: columns_of()})
    assert list(some) == [b"a"]
    assert none.shape == (0,) and none.dtype == np.object_


if __name__ == "__main__":
    run()
