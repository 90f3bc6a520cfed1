"""Exceptions as Triton prints them."""

from __future__ import annotations

import os

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _is_hidden(filename):
    """Our own frames, and how Python imports."""
    return filename.startswith((_HERE, "<frozen importlib"))


def _text_of(error):
    """What the exception says; one that cannot say it must not end the process."""
    try:
        return str(error)
    except BaseException as failure:
        return "<its text failed with %s>" % type(failure).__name__


def describe_exception(error):
    """`Type: text`, a blank line, `At:` and the model's frames, innermost first. A plain exception is all in its text."""
    if getattr(error, "is_plain", False):
        return _text_of(error)
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not _is_hidden(code.co_filename):
            frames.append("  %s(%d): %s" % (code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        frames.append("  %s(%s): <module>" % (error.filename, error.lineno))
    text = "%s: %s" % (type(error).__name__, _text_of(error))
    if not frames:
        return text
    return text + "\n\nAt:\n" + "\n".join(reversed(frames)) + "\n"
