"""Failures, with Triton's texts and codes."""
from __future__ import annotations

from triton_python_backend_utils import TritonError


class LoadFailure(Exception):
    """Why a model is not loaded. `is_plain`: the text is complete; no type and no frames are to be added to it."""

    is_plain = True


class RequestFailure(Exception):
    """Why a request is not answered, or every request of a run."""

    def __init__(self, message: str, code=TritonError.INTERNAL):
        super().__init__(message)
        self.code = code
