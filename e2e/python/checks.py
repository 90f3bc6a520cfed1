"""Runs named checks and reports each as one JSON line, so that the test runner can count them."""

import argparse
import json
import os
import sys
import traceback

CHECKS = []


def check(function):
    """Registers a check; its docstring is the behaviour that it shows."""
    CHECKS.append(function)
    return function


def read_flags(*names, optional=()):
    """The arguments of a script, each `--NAME=VALUE`."""
    parser = argparse.ArgumentParser()
    for name in (*names, *optional):
        parser.add_argument(f"--{name}", required=name not in optional)
    return parser.parse_args()


def refusal(call, *arguments, **options):
    """The error of a call of tritonclient that has to fail."""
    from tritonclient.utils import InferenceServerException

    try:
        call(*arguments, **options)
    except InferenceServerException as error:
        return error
    raise AssertionError("it should have been refused")


def refusal_text(call, *arguments, **options):
    """What the server says of a call that has to fail."""
    return refusal(call, *arguments, **options).message()


def run(*arguments):
    """Calls every check with the arguments. A check fails by raising."""
    for function in CHECKS:
        name = (function.__doc__ or function.__name__).strip()
        try:
            function(*arguments)
            report = {"name": name, "ok": True}
        except Exception:  # a failed check must not keep the others from running
            report = {"name": name, "ok": False, "detail": traceback.format_exc()}
        print(json.dumps(report), flush=True)
    sys.stdout.flush()
    # At the end of the interpreter a channel of gRPC may wait for ever for a thread that is gone.
    os._exit(0)
