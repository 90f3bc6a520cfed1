"""The server that runs the model, as far as the library needs it."""
from __future__ import annotations

import contextvars

from .errors import TritonModelException, expect, expect_truth

# The instance that the code at hand works for. A thread that a model starts has none, unless it runs in a copy of the context.
_current = contextvars.ContextVar("tutti_host", default=None)
# Those of this process: several where instances share it.
_hosts = []


def bind(host) -> None:
    """Names the server's side of an instance, whose code runs in this thread; None takes all away."""
    _current.set(host)
    if host is None:
        _hosts.clear()
    else:
        _hosts.append(host)


def current():
    """The server's side of the instance that the code at hand works for; None where that is not known."""
    return _current.get()


def bound():
    """As `current`, where that is not known the process's first, which is as good for all but calls; None in a plain interpreter."""
    host = _current.get()
    if host is None and _hosts:
        return _hosts[0]
    return host


def need(what: str):
    """As `bound`; raises where there is none."""
    host = bound()
    if host is None:
        raise TritonModelException(
            f"{what} needs a server: triton_python_backend_utils was imported outside of a running model"
        )
    return host


def need_caller(maker):
    """
    The server's side that a call goes through, which decides for which requests it is: that of the code at hand, else `maker`,
    where the called request was made. Raises where one instance cannot be told from another.
    """
    host = _current.get() or maker
    if host is None and len(_hosts) > 1:
        raise TritonModelException(
            "exec: which instance calls is not known in this thread, which the model has started in a process that instances "
            "share. Make the request in 'execute', or run the thread's function in contextvars.copy_context()"
        )
    return host or need("exec")


def load_model(model_name: str, config: str = "", files: dict | None = None) -> None:
    """
    Loads or reloads a model of the repository, and returns when it is ready.

    `config`: a model configuration as JSON in place of the repository's. `files`: contents (bytes) by path, each path in the
    form `file:1/model.onnx`, in place of the repository's version folders; needs a config.
    """
    model_name = expect(model_name, str, "load_model", "model_name")
    config = expect(config, str, "load_model", "config")
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{model_name}', files should be a dictionary of file paths and file contents"
        )
    for path, content in (files or {}).items():
        expect(path, str, "load_model", "files")
        expect(content, bytes, "load_model", f"files['{path}']")
    host = need("load_model")
    try:
        host.load_model(model_name, config, dict(files or {}))
    except TritonModelException as error:
        raise TritonModelException(f"Failed to load model: {error}") from None


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Asks for a model to be unloaded; returns before that is done."""
    model_name = expect(model_name, str, "unload_model", "model_name")
    unload_dependents = expect_truth(unload_dependents, "unload_model", "unload_dependents")
    host = need("unload_model")
    try:
        host.unload_model(model_name, unload_dependents)
    except TritonModelException as error:
        raise TritonModelException(f"Failed to unload model: {error}") from None


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a version of a model can take requests; without a version, whether any can."""
    model_name = expect(model_name, str, "is_model_ready", "model_name")
    model_version = expect(model_version, str, "is_model_ready", "model_version")
    host = need("is_model_ready")
    try:
        return bool(host.is_model_ready(model_name, model_version))
    except TritonModelException as error:
        raise TritonModelException(f"Failed to check model readiness: {error}") from None


def get_model_dir() -> str:
    """The folder of the model's version: where its model.py lies."""
    return str(need("get_model_dir").model_dir)
