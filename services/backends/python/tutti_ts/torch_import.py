"""The one place that imports torch, so that its absence is a load failure and not a crash of the process."""
from __future__ import annotations

import sys

from .failures import LoadFailure

try:
    import torch
except Exception as error:
    # Not only ImportError: a build that lacks a library of the system raises OSError.
    torch = None
    _problem = f"{type(error).__name__}: {error}"

#: torch.jit.freeze and optimize_for_inference are as they are used here since then.
_OLDEST = (1, 12)


def need_torch(model: str):
    """torch, or LoadFailure that says what to install and where."""
    if torch is None:
        raise LoadFailure(
            f"failed to load model '{model}': PyTorch cannot be imported by {sys.executable} ({_problem}). Install it "
            "there (PyPI: torch; Debian: python3-torch), or name an interpreter that has it by tutti serve --python PATH "
            "(auto finds or makes one) or tutti step --backend-config=pytorch,interpreter=PATH"
        )
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < _OLDEST:
        raise LoadFailure(
            f"failed to load model '{model}': PyTorch {torch.__version__} of {sys.executable} is too old, want "
            f"{_OLDEST[0]}.{_OLDEST[1]} or newer"
        )
    return torch
