"""Errors that models make, raise and read."""
from __future__ import annotations

import enum
import numbers


class TritonErrorCode(enum.IntEnum):
    """The codes of an error, numbered as in Triton's C API."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


class TritonModelException(Exception):
    """The error that the library raises, and that a model may raise: it fails every request of the batch."""

    def __init__(self, msg: str | None = None):
        super().__init__(msg)
        self._msg = msg

    def __str__(self) -> str:
        return "" if self._msg is None else str(self._msg)

    def message(self) -> str | None:
        """The text that it was made with."""
        return self._msg


class TritonError:
    """The error of one response."""

    __slots__ = ("_message", "_code", "__weakref__")

    UNKNOWN = TritonErrorCode.UNKNOWN
    INTERNAL = TritonErrorCode.INTERNAL
    NOT_FOUND = TritonErrorCode.NOT_FOUND
    INVALID_ARG = TritonErrorCode.INVALID_ARG
    UNAVAILABLE = TritonErrorCode.UNAVAILABLE
    UNSUPPORTED = TritonErrorCode.UNSUPPORTED
    ALREADY_EXISTS = TritonErrorCode.ALREADY_EXISTS
    CANCELLED = TritonErrorCode.CANCELLED

    def __init__(self, message: str, code: TritonErrorCode = TritonErrorCode.INTERNAL):
        self._message = expect(message, str, "TritonError", "message")
        self._code = expect(code, TritonErrorCode, "TritonError", "code")

    def message(self) -> str:
        """The text."""
        return self._message

    def code(self) -> TritonErrorCode:
        """One of the codes above."""
        return self._code

    def __str__(self) -> str:
        return self._message

    def __repr__(self) -> str:
        return f"TritonError({self._message!r}, {self._code.name})"


INT64 = (-(2**63), 2**63 - 1)
UINT64 = (0, 2**64 - 1)
UINT32 = (0, 2**32 - 1)


def expect_integer(value, bounds: tuple[int, int], where: str, argument: str) -> int:
    """Returns a whole number within bounds, else raises TypeError, as Triton's bindings do for an integer of so many bits."""
    number = expect(value, int, where, argument)
    least, most = bounds
    if not least <= number <= most:
        raise TypeError(f"{where}: '{argument}' must be from {least} to {most}, got {number}")
    return number


def expect_truth(value, where: str, argument: str) -> bool:
    """Returns whether a bool, or a number, is true, else raises TypeError."""
    if value is None or not hasattr(type(value), "__bool__"):
        raise TypeError(f"{where}: '{argument}' must be bool, got {type(value).__name__}")
    return bool(value)


def expect(value, kind, where: str, argument: str):
    """
    Returns the value if it is of that type, else raises TypeError: Triton's bindings convert nothing but integers of NumPy and
    UTF-8, so a model that relied on a conversion would not run there.
    """
    if isinstance(value, kind):
        return value
    if kind is int and isinstance(value, numbers.Integral):
        # NumPy's.
        return int(value)
    if kind is str and isinstance(value, bytes):
        return value.decode()
    names = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
    raise TypeError(f"{where}: '{argument}' must be {names}, got {type(value).__name__}")
