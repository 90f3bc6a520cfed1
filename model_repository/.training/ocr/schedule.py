"""How fast to learn at a step."""

import math

WARMUP = 100


def one_cycle(step, steps):
    """0 to 1: up along a line, then down along half a cosine."""
    return min(1.0, (step + 1) / WARMUP) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
