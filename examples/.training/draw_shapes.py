"""Draws shapes on coloured paper, with noise: what the models of the examples learn from, and what they are asked."""

import numpy as np

LABELS = ["circle", "cross", "ring", "square", "star", "triangle"]
SIDE = 64  # pixels of a picture of one shape
SAMPLES = 3  # of a pixel, in each direction


def star_radius(angle):
    """How far a star of five points with outer radius 1 and inner radius 0.45 reaches at an angle"""
    turn = np.abs((angle + np.pi / 5) % (2 * np.pi / 5) - np.pi / 5)
    inner = 0.45 * np.exp(1j * np.pi / 5)
    edge = inner - 1
    # The ray at `turn` meets the line from the point at 1 to the notch at `inner`.
    return edge.imag / (edge.imag * np.cos(turn) - edge.real * np.sin(turn))


INSIDE = {
    "circle": lambda x, y: x * x + y * y < 0.81,
    "cross": lambda x, y: (np.maximum(abs(x), abs(y)) < 0.95) & (np.minimum(abs(x), abs(y)) < 0.27),
    "ring": lambda x, y: (x * x + y * y < 0.9) & (x * x + y * y > 0.32),
    "square": lambda x, y: np.maximum(abs(x), abs(y)) < 0.72,
    "star": lambda x, y: np.hypot(x, y) < star_radius(np.arctan2(y, x)),
    "triangle": lambda x, y: (y < 0.5) & (y > np.sqrt(3) * abs(x) - 1),
}


def paper(random, height, width):
    """-> a colour that changes from one corner to the other, float [H,W,3], 0 to 255"""
    one, other = random.uniform(20, 235, (2, 3))
    down, right = np.mgrid[0:height, 0:width] / max(height, width)
    part = ((down + right) / 2)[..., None]
    return one + (other - one) * part * random.uniform(0, 0.6)


def draw(random, picture, label, centre, radius):
    """Draws a shape, turned at random, in a colour that differs from what is there."""
    top, left = (int(max(0, place - 1.1 * radius)) for place in centre)
    window = picture[top : int(centre[0] + 1.1 * radius) + 2, left : int(centre[1] + 1.1 * radius) + 2]
    height, width, _ = window.shape
    down, right = np.mgrid[0 : height * SAMPLES, 0 : width * SAMPLES] / SAMPLES
    y, x = (down + top - centre[0]) / radius, (right + left - centre[1]) / radius
    angle = random.uniform(0, 2 * np.pi)
    x, y = x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)
    inside = INSIDE[label](x, y).reshape(height, SAMPLES, width, SAMPLES).mean((1, 3))[..., None]
    below = picture[int(centre[0]), int(centre[1])]
    while np.abs((colour := random.uniform(0, 255, 3)) - below).sum() < 220:
        pass
    window += (colour - window) * inside


def noisy(random, picture):
    """-> UINT8 [H,W,3]"""
    noise = random.normal(0, random.uniform(0, 12), picture.shape)
    return np.clip(np.rint(picture + noise), 0, 255).astype(np.uint8)


def one_shape(random, label):
    """-> UINT8 [64,64,3]: the shape somewhere near the middle"""
    picture = paper(random, SIDE, SIDE)
    draw(random, picture, label, random.uniform(26, 38, 2), random.uniform(20, 30))
    return noisy(random, picture)


def scene(random, height=192, width=256):
    """-> UINT8 [H,W,3] with shapes that do not touch, and (label, centre down, centre right, radius) of each"""
    picture = paper(random, height, width)
    shapes = []
    for _ in range(random.integers(12, 40)):
        radius = random.uniform(18, 34)
        down, right = (random.uniform(radius + 2, side - radius - 2) for side in (height, width))
        if all(np.hypot(down - a, right - b) > radius + r + 12 for _, a, b, r in shapes):
            shapes.append((str(random.choice(LABELS)), down, right, radius))
    shapes = shapes[: random.integers(0, 9)]
    for label, down, right, radius in shapes:
        draw(random, picture, label, (down, right), radius)
    return noisy(random, picture), shapes
