"""Lets a model complete its configuration, in a process of its own."""

from __future__ import annotations

import json
import os

from .frames import Op
from .tracebacks import describe_load_failure


def complete_config(connection, settings):
    """Calls the model's `auto_complete_config`, if it has one, and sends the configuration that it made."""
    import triton_python_backend_utils as library

    from .executor import WrongReturn
    from .host import Host
    from .server import Server
    from .user_model import import_model

    server = Server(connection, None, settings["limit"])
    library._bind(Host(server, os.getcwd(), library, settings["name"]))
    try:
        model = import_model(settings["file"], settings["package"])
        answer = {"config": None}
        if hasattr(model, "auto_complete_config"):
            completed = model.auto_complete_config(library.ModelConfig(settings["config"]))
            if not isinstance(completed, library.ModelConfig):
                raise WrongReturn(
                    "auto_complete_config function in model '%s' must return a valid pb.ModelConfig object."
                    % settings["name"]
                )
            answer = {"config": json.dumps(completed.as_dict())}
    except BaseException as error:
        text = describe_load_failure(error)
        connection.send(Op.FAILED, 0, json.dumps({"message": text}).encode())
        return 1
    connection.send(Op.READY, 0, json.dumps(answer).encode())
    return 0
