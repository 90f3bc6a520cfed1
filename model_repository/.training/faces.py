"""Draws faces: a seed gives a picture, so that training needs no data set of real people."""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SIZE = 512  # drawn at this size, delivered at half

SKINS = [
    (255, 224, 196),
    (241, 194, 160),
    (224, 172, 125),
    (198, 134, 90),
    (141, 85, 50),
    (92, 58, 38),
]
HAIRS = [(30, 22, 18), (70, 45, 28), (120, 80, 45), (190, 150, 90), (150, 60, 30), (150, 150, 150)]
IRISES = [(70, 45, 25), (90, 120, 60), (70, 110, 160), (110, 120, 130), (40, 28, 20)]


class Canvas:
    """A float picture [SIZE,SIZE,3] on which soft masks are blended."""

    def __init__(self, rng):
        self.rng = rng
        self.y, self.x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
        self.pixels = np.zeros((SIZE, SIZE, 3), np.float32)

    def blend(self, mask, colour, amount=1.0):
        alpha = mask[..., None] * amount
        self.pixels += alpha * (np.asarray(colour, np.float32) - self.pixels)

    def shade(self, mask, amount):
        """Multiplies: amount above 0 lightens, below 0 darkens."""
        self.pixels *= 1 + amount * mask[..., None]

    def blob(self, cx, cy, rx, ry):
        """A Gaussian spot with standard deviations rx and ry."""
        return np.exp(-(((self.x - cx) / rx) ** 2 + ((self.y - cy) / ry) ** 2) / 2)

    def polygon(self, points, blur=1.0):
        return draw_mask(lambda pen: pen.polygon(points, fill=255), blur)

    def strokes(self, lines, width, blur=0.7):
        def draw(pen):
            for line in lines:
                pen.line(line, fill=255, width=width, joint="curve")

        return draw_mask(draw, blur)

    def noise(self, cells):
        """Smooth noise in [-1,1] with that many cells across."""
        grid = self.rng.uniform(-1, 1, (cells, cells)).astype(np.float32)
        return np.asarray(Image.fromarray(grid).resize((SIZE, SIZE), Image.BICUBIC))


def draw_mask(draw, blur):
    image = Image.new("L", (SIZE, SIZE))
    draw(ImageDraw.Draw(image))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(blur)), np.float32) / 255


def ring(cx, cy, rx, ry, power=2.0, lower=1.0, start=0.0, end=2 * math.pi):
    """Points of a superellipse; `lower` narrows it downwards, as a chin does."""
    points = []
    for t in np.linspace(start, end, 72):
        c, s = math.cos(t), math.sin(t)
        x = math.copysign(abs(c) ** (2 / power), c) * (lower if s > 0 else 1) ** max(s, 0)
        y = math.copysign(abs(s) ** (2 / power), s)
        points.append((cx + rx * x, cy + ry * y))
    return points


def pick(rng, colours, spread=18):
    return np.clip(
        np.array(colours[rng.integers(len(colours))]) + rng.normal(0, spread, 3) * 0.5, 5, 255
    )


def draw_face(seed):
    """Returns uint8 RGB [256,256,3]; the same seed gives the same picture."""
    rng = np.random.default_rng(seed)
    canvas = Canvas(rng)
    face = {
        "cx": SIZE / 2 + rng.uniform(-25, 25),
        "cy": SIZE / 2 + rng.uniform(-15, 35),
        "rx": rng.uniform(105, 150),
        "ry": rng.uniform(150, 190),
        "skin": pick(rng, SKINS),
        "hair": pick(rng, HAIRS),
        "light": rng.choice([-1, 1]) * rng.uniform(0.3, 1),
    }
    for part in (background, back_hair, body, head, eyes, nose, mouth, front_hair, extras):
        part(canvas, face, rng)
    return finish(canvas, rng)


def background(canvas, face, rng):
    top, bottom = rng.uniform(20, 240, 3), rng.uniform(20, 240, 3)
    canvas.pixels += top + (bottom - top) * (canvas.y / SIZE)[..., None]
    for cells in (4, 9, 30):
        canvas.pixels += canvas.noise(cells)[..., None] * rng.uniform(-30, 30, 3)
    for _ in range(rng.integers(0, 7)):  # shelves, windows, stripes of a flag
        x, y = rng.uniform(0, SIZE, 2)
        w, h = rng.uniform(10, 250, 2)
        box = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]
        canvas.blend(
            canvas.polygon(box, rng.uniform(0.5, 6)), rng.uniform(0, 255, 3), rng.uniform(0.3, 1)
        )


def strands(canvas, face, rng, count, spread, mask):
    """Lines from the crown down, lighter and darker than the hair, kept inside the mask."""
    cx, cy, rx, ry = face["cx"], face["cy"], face["rx"], face["ry"]
    for tone in (-0.45, 0.5, 0.25):
        lines = []
        for _ in range(count):
            side, sway = rng.uniform(-spread, spread), rng.normal(0, 8)
            ts = np.linspace(0, 1, 9)
            xs = cx + side * rx * np.sin(ts * 1.6) * 1.15 + sway * np.sin(5 * ts)
            ys = cy - ry * 1.15 + ts**1.5 * ry * rng.uniform(0.6, 2.2)
            lines.append(list(zip(xs, ys)))
        canvas.shade(canvas.strokes(lines, int(rng.integers(1, 4))) * mask, tone)


def back_hair(canvas, face, rng):
    face["long"] = rng.uniform() < 0.55
    bottom = rng.uniform(1.1, 1.7) if face["long"] else 0.75
    cx, cy, rx, ry = face["cx"], face["cy"], face["rx"], face["ry"]
    mask = canvas.polygon(ring(cx, cy - ry * 0.1, rx * rng.uniform(1.12, 1.4), ry * 1.12, 2.3), 4)
    if face["long"]:
        flow = [
            (cx - rx * 1.3, cy),
            (cx + rx * 1.3, cy),
            (cx + rx * 1.4, cy + ry * bottom),
            (cx - rx * 1.4, cy + ry * bottom),
        ]
        mask = np.maximum(mask, canvas.polygon(flow, 7))
    canvas.blend(mask, face["hair"])
    strands(canvas, face, rng, 60, 1.3, mask)


def body(canvas, face, rng):
    cx, cy, rx, ry, skin = face["cx"], face["cy"], face["rx"], face["ry"], face["skin"]
    cloth = rng.uniform(10, 245, 3)
    neck = [
        (cx - rx * 0.5, cy),
        (cx + rx * 0.5, cy),
        (cx + rx * 0.62, SIZE),
        (cx - rx * 0.62, SIZE),
    ]
    canvas.blend(canvas.polygon(neck, 2), skin * 0.8)
    shoulders = canvas.polygon(ring(cx, SIZE + ry * 0.45, rx * 2.1, ry * 0.95, 2.6), 1.5)
    canvas.blend(shoulders, cloth)
    canvas.shade(shoulders * canvas.noise(14), 0.25)
    if rng.uniform() < 0.5:
        pitch, angle = rng.uniform(10, 40), rng.uniform(0, math.pi)
        wave = np.sin(
            (canvas.x * math.cos(angle) + canvas.y * math.sin(angle)) * 2 * math.pi / pitch
        )
        canvas.blend(shoulders * (wave > 0.2), rng.uniform(0, 255, 3), rng.uniform(0.3, 1))
    opening = [
        (cx - rx * 0.55, cy + ry * 1.2),
        (cx + rx * 0.55, cy + ry * 1.2),
        (cx, SIZE + rng.uniform(-20, 60)),
    ]
    canvas.blend(canvas.polygon(opening, 1.5), skin * 0.85)
    canvas.shade(canvas.blob(cx, cy + ry * 1.05, rx * 0.6, ry * 0.16), -0.45)


def head(canvas, face, rng):
    cx, cy, rx, ry, skin = face["cx"], face["cy"], face["rx"], face["ry"], face["skin"]
    for side in (-1, 1):
        ear = ring(cx + side * rx * 1.0, cy + ry * 0.05, rx * 0.14, ry * 0.2)
        canvas.blend(canvas.polygon(ear, 1.5), skin * 0.88)
        canvas.shade(canvas.blob(cx + side * rx * 1.03, cy + ry * 0.05, rx * 0.05, ry * 0.1), -0.3)
    mask = canvas.polygon(ring(cx, cy, rx, ry, rng.uniform(2.0, 2.5), rng.uniform(0.72, 0.92)), 1.5)
    face["mask"] = mask
    canvas.blend(mask, skin)
    across = (canvas.x - cx) / rx
    canvas.shade(mask * np.clip(across * face["light"], -1.2, 1.2), 0.22)
    canvas.shade(mask * np.clip(across**2 - 0.45, 0, 1), -0.45)
    canvas.shade(
        mask * canvas.blob(cx - face["light"] * 20, cy - ry * 0.6, rx * 0.6, ry * 0.25), 0.15
    )
    for side in (-1, 1):
        blush = mask * canvas.blob(cx + side * rx * 0.55, cy + ry * 0.3, rx * 0.25, ry * 0.15)
        canvas.blend(blush, skin * (1.05, 0.75, 0.72), rng.uniform(0, 0.5))
    for cells, strength in ((8, 0.05), (60, 0.04), (250, 0.05)):  # tone, pores
        canvas.shade(mask * canvas.noise(cells), strength * rng.uniform(0.3, 1.3))
    if rng.uniform() < 0.4:  # freckles, moles
        dots = [
            [(x, y), (x + 1, y + 1)]
            for x, y in rng.normal((cx, cy + ry * 0.2), (rx * 0.5, ry * 0.25), (40, 2))
        ]
        canvas.shade(canvas.strokes(dots, 2, 1) * mask, -0.4)


def eyes(canvas, face, rng):
    cx, cy, rx, ry = face["cx"], face["cy"], face["rx"], face["ry"]
    iris = pick(rng, IRISES)
    gap, width, open_ = (
        rng.uniform(0.4, 0.47) * rx,
        rng.uniform(0.19, 0.25) * rx,
        rng.uniform(0.32, 0.55),
    )
    level, gaze = cy - ry * rng.uniform(0.08, 0.16), rng.uniform(-0.25, 0.25)
    lift, thick = rng.uniform(-6, 8), int(rng.integers(2, 5))
    for side in (-1, 1):
        ex, ey, h = cx + side * gap, level, width * open_
        canvas.shade(canvas.blob(ex, ey - 3, width * 1.1, width * 0.8), -0.3)
        almond = canvas.polygon(ring(ex, ey, width, h, 1.7), 0.8)
        canvas.blend(almond, (238, 234, 230))
        r, ix = h * rng.uniform(0.92, 1.05), ex + gaze * width
        canvas.blend(canvas.polygon(ring(ix, ey - 1, r, r), 0.8) * almond, iris * 0.6)
        canvas.blend(canvas.polygon(ring(ix, ey - 1, r * 0.8, r * 0.8), 1.2) * almond, iris)
        canvas.blend(canvas.polygon(ring(ix, ey - 1, r * 0.42, r * 0.42), 0.7) * almond, (8, 8, 8))
        canvas.blend(
            canvas.polygon(ring(ix + 4, ey - 5, r * 0.18, r * 0.18), 0.6), (255, 255, 255), 0.9
        )
        canvas.shade(canvas.blob(ex, ey - h * 0.9, width, h * 0.35) * almond, -0.5)
        lid = ring(ex, ey, width * 1.05, h * 1.1, 1.7, start=math.pi, end=2 * math.pi)
        canvas.shade(canvas.strokes([lid], thick), -0.8)
        crease = [(x, y - width * 0.3) for x, y in lid]
        canvas.shade(canvas.strokes([crease], 2, 1.2), -0.35)
        bag = ring(ex, ey + 3, width * 1.0, h * 1.35, 1.8, start=0.3, end=math.pi - 0.3)
        canvas.shade(canvas.strokes([bag], 2, 1.5), -rng.uniform(0.1, 0.35))
        lashes = [[p, (p[0] + (p[0] - ex) * 0.12, p[1] - rng.uniform(3, 8))] for p in lid[6:66:5]]
        canvas.shade(canvas.strokes(lashes, 1), -0.6)
        hairs = []
        for t in np.linspace(-1, 1, 46):
            bx = ex + t * width * 1.25
            by = ey - width * 0.75 - lift * side * t - 9 * (1 - t * t) + rng.normal(0, 1.6)
            hairs.append([(bx, by + 4), (bx + side * rng.uniform(4, 9), by - rng.uniform(1, 6))])
        canvas.blend(canvas.strokes(hairs, 2), face["hair"] * 0.7, rng.uniform(0.5, 1))


def nose(canvas, face, rng):
    cx, cy, rx, ry = face["cx"], face["cy"], face["rx"], face["ry"]
    tip, w = cy + ry * rng.uniform(0.2, 0.28), rx * rng.uniform(0.15, 0.22)
    side = 1 if face["light"] > 0 else -1
    canvas.shade(canvas.blob(cx - side * w * 0.7, tip - ry * 0.16, w * 0.35, ry * 0.16), -0.22)
    canvas.shade(canvas.blob(cx, tip - ry * 0.15, w * 0.25, ry * 0.16), 0.16)
    canvas.shade(canvas.blob(cx, tip - 4, w * 0.35, w * 0.3), 0.22)
    canvas.shade(canvas.blob(cx, tip + w * 0.62, w * 1.1, w * 0.28), -0.28)
    for sign in (-1, 1):
        canvas.shade(
            canvas.polygon(ring(cx + sign * w * 0.5, tip + w * 0.42, w * 0.26, w * 0.14), 1.2), -0.7
        )
        wing = ring(cx + sign * w * 0.75, tip + w * 0.1, w * 0.38, w * 0.45, start=-1.2, end=1.4)
        wing = [(cx + sign * w * 0.75 + sign * (x - cx - sign * w * 0.75), y) for x, y in wing]
        canvas.shade(canvas.strokes([wing], 2, 1.3), -0.4)


def mouth(canvas, face, rng):
    cx, y = face["cx"], face["cy"] + face["ry"] * rng.uniform(0.48, 0.56)
    w, smile = face["rx"] * rng.uniform(0.32, 0.45), rng.uniform(-4, 16)
    lip = face["skin"] * np.array(
        [rng.uniform(0.75, 0.95), rng.uniform(0.45, 0.68), rng.uniform(0.45, 0.68)]
    )
    ts = np.linspace(-1, 1, 31)
    gap = max(rng.uniform(-10, 16), 0)
    corner = smile * (1 - ts**2) - smile
    line = list(zip(cx + ts * w, y + corner))
    inner = list(zip(cx + ts * w * 0.9, y + corner + gap * (1 - ts**2)))
    upper = list(zip(cx + ts * w, y + corner - 14 * (1 - ts**2) + 5 * np.exp(-((ts / 0.15) ** 2))))
    lower = list(
        zip(cx + ts * w, y + corner + gap * (1 - ts**2) + rng.uniform(12, 20) * (1 - ts**2))
    )
    canvas.blend(canvas.polygon(upper + line[::-1], 1), lip * 0.88)
    canvas.blend(canvas.polygon(inner + lower[::-1], 1), lip)
    if gap > 2:
        canvas.blend(
            canvas.polygon(line + inner[::-1], 0.8),
            (235, 230, 222) if rng.uniform() < 0.7 else (70, 20, 20),
        )
        teeth = [[(cx + k * w * 0.14, y - 2), (cx + k * w * 0.14, y + gap)] for k in range(-4, 5)]
        canvas.shade(canvas.strokes(teeth, 1) * canvas.polygon(line + inner[::-1], 0.8), -0.25)
    canvas.shade(canvas.strokes([line], 2), -0.6)
    canvas.shade(canvas.blob(cx, y + gap + 12, w * 0.4, 3), rng.uniform(0, 0.4))
    canvas.shade(canvas.blob(cx, y + gap + 30, w * 0.6, 6), -0.2)
    for side in (-1, 1):
        fold = [
            (cx + side * w * (0.62 + 0.5 * t), y - 52 + 60 * t - 10 * math.sin(t * 3))
            for t in np.linspace(0, 1, 12)
        ]
        canvas.shade(canvas.strokes([fold], 3, 2.5), -rng.uniform(0.05, 0.4))


def front_hair(canvas, face, rng):
    cx, cy, rx, ry = face["cx"], face["cy"], face["rx"], face["ry"]
    if rng.uniform() < 0.1:
        return
    outer = ring(
        cx, cy - ry * 0.05, rx * 1.15, ry * 1.15, 2.3, start=math.pi - 0.25, end=2 * math.pi + 0.25
    )
    parting, depth = rng.uniform(-0.7, 0.7), rng.uniform(0.35, 0.7)
    ts = np.linspace(1.05, -1.05, 40)
    fringe = cy - ry * (0.95 - depth * np.abs(ts - parting) ** 1.5 * 0.55) + rng.normal(0, 3, 40)
    mask = canvas.polygon(outer + list(zip(cx + ts * rx, fringe)), 2)
    canvas.shade(np.roll(mask, 10, 0) * face["mask"] * (1 - mask), -0.3)
    canvas.blend(mask, face["hair"])
    strands(canvas, face, rng, 90, 1.2, mask)


def extras(canvas, face, rng):
    cx, cy, rx, ry = face["cx"], face["cy"], face["rx"], face["ry"]
    if rng.uniform() < 0.25:  # beard
        zone = canvas.blob(cx, cy + ry * 0.75, rx * 0.55, ry * 0.28) * face["mask"]
        starts = rng.normal((cx, cy + ry * 0.72), (rx * 0.4, ry * 0.2), (700, 2))
        hairs = [[(x, y), (x + rng.normal(0, 2), y + rng.uniform(3, 9))] for x, y in starts]
        canvas.blend(zone, face["hair"], rng.uniform(0.1, 0.5))
        canvas.blend(canvas.strokes(hairs, 1) * zone, face["hair"] * 0.7)
    if rng.uniform() < 0.25:  # glasses
        frame, width, level = rng.uniform(0, 120, 3), int(rng.integers(2, 6)), cy - ry * 0.11
        power = rng.uniform(2, 4)
        rims = [ring(cx + s * rx * 0.44, level, rx * 0.33, rx * 0.27, power) for s in (-1, 1)]
        bridge = [(cx - rx * 0.12, level - 4), (cx + rx * 0.12, level - 4)]
        arms = [[(cx + s * rx * 0.76, level - 4), (cx + s * rx, level)] for s in (-1, 1)]
        canvas.blend(canvas.strokes([*rims, bridge, *arms], width), frame)
        for rim in rims:
            canvas.shade(canvas.polygon(rim, 1), rng.uniform(-0.1, 0.1))


def finish(canvas, rng):
    """Turns, moves, tints, sharpens to the delivered size and adds a little film grain."""
    pixels = canvas.pixels * rng.uniform(0.75, 1.15) * rng.uniform(0.92, 1.08, 3)
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    angle, shift = rng.normal(0, 8), tuple(rng.uniform(-30, 30, 2))
    image = image.rotate(angle, Image.BICUBIC, translate=shift)
    zoom = rng.uniform(0.62, 0.98) * SIZE / 2
    cx, cy = SIZE / 2 + shift[0], SIZE / 2 + shift[1]
    left = min(max(cx - zoom, 0), SIZE - 2 * zoom)
    top = min(max(cy - zoom, 0), SIZE - 2 * zoom)
    image = image.resize(
        (SIZE // 2, SIZE // 2), Image.LANCZOS, (left, top, left + 2 * zoom, top + 2 * zoom)
    )
    grain = rng.normal(0, rng.uniform(0, 2), (SIZE // 2, SIZE // 2, 1))
    return np.clip(np.asarray(image, np.float32) + grain, 0, 255).astype(np.uint8)
