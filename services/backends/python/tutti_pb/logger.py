"""Lines in the server's log."""
from __future__ import annotations

import enum
import sys

from . import host
from .errors import expect


class LogLevel(enum.IntEnum):
    """Levels, numbered as in Triton."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


class Logger:
    """
    Writes lines that carry the place of the call. Everything works on the class and on an instance.

    Outside of a server the lines go to stderr.
    """

    LogLevel = LogLevel
    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message: str, level: LogLevel = LogLevel.INFO) -> None:
        """A line of that level."""
        _write(message, expect(level, LogLevel, "Logger.log", "level"))

    @staticmethod
    def log_info(message: str) -> None:
        """A line of level info."""
        _write(message, LogLevel.INFO)

    @staticmethod
    def log_warn(message: str) -> None:
        """A line of level warning."""
        _write(message, LogLevel.WARNING)

    @staticmethod
    def log_error(message: str) -> None:
        """A line of level error."""
        _write(message, LogLevel.ERROR)

    @staticmethod
    def log_verbose(message: str) -> None:
        """A line that is written only if the server's log is verbose."""
        _write(message, LogLevel.VERBOSE)


def _write(message: str, level: LogLevel) -> None:
    message = expect(message, str, "Logger", "message")
    # The caller of the method that called this.
    frame = sys._getframe(2)
    filename, line = frame.f_code.co_filename, frame.f_lineno
    server = host.bound()
    if server is None:
        print(f"{level.name} {filename}:{line}] {message}", file=sys.stderr)
        return
    server.log(level.name.lower(), message, filename, line)
