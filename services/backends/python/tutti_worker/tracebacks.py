"""Exceptions as Triton prints them."""

from __future__ import annotations

import os
import shlex
import sys

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


#: Packages that pip installs for modules. An index has packages of nearly any name, so no other one is advised:
#: `import preprocessing` may be of a file that was forgotten, and the package of that name is anyone's.
_PACKAGES = {
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    **{
        name: name
        for name in ("numpy", "onnxruntime", "pandas", "requests", "scipy", "tokenizers", "torch", "torchvision", "transformers")
    },
}


def _is_hidden(filename):
    """Our own frames, and how Python imports."""
    return filename.startswith((_HERE, "<frozen importlib"))


def _text_of(error):
    """Reads the text of the exception, in Triton's words if it has none; one that cannot say it must not end the process."""
    try:
        return str(error) or "<EMPTY MESSAGE>"
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


def place_of(error):
    """File and line of the model's innermost frame, for a line of the log."""
    place = ("", 0)
    trace = error.__traceback__
    while trace is not None:
        if not _is_hidden(trace.tb_frame.f_code.co_filename):
            place = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return place


def describe_load_failure(error):
    """As `describe_exception`, and how to get a module that is not installed."""
    text = describe_exception(error)
    module = error.name if isinstance(error, ModuleNotFoundError) else None
    # A module that lacks a part is installed, and a model's own folder is not from an index.
    if not isinstance(module, str) or "." in module:
        return text
    package = _PACKAGES.get(module)
    advice = (
        "install it (%s -m pip install %s)" % (shlex.quote(sys.executable), package)
        if package
        else "install the package that brings it, or add its file to the model's folder if it is your own"
    )
    return (
        "%s\n%s lacks the module %r: %s, or "
        "name an interpreter that has it by tutti serve --python PATH. On Kubernetes, give the Model an image with it (docs/models.md#images-and-packages).\n"
        % (text.rstrip("\n"), sys.executable, module, advice)
    )
