"""The model's own word on whether it is ready: `is_ready`, in a thread of its own, also while the model executes."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import sys
import threading
import traceback

from .frames import Op


def answer_readiness(server, model):
    """From now on the server may ask. It asks again only when it has its answer."""
    context = contextvars.copy_context()

    def answer(frame):
        threading.Thread(target=reply, args=(frame.id,), name="tutti-ready", daemon=True).start()

    def reply(id):
        answer = json.dumps({"ready": context.copy().run(ask, model)}).encode()
        server.connection.post(Op.IS_READY, id, answer)

    server.handlers[Op.ASK_READY] = answer
    # A model that executes is asked too.
    server.link.need_pump()


def ask(model):
    """Asks the model whether it is ready. If that goes wrong, it is not, and the error stands in the log."""
    try:
        said = model.is_ready()
        if inspect.isawaitable(said):
            said = asyncio.run(wait(said))
    except BaseException:
        traceback.print_exc()
        return False
    if not isinstance(said, bool):
        print("is_ready gave %r, want a bool" % type(said), file=sys.stderr, flush=True)
        return False
    return said


async def wait(awaitable):
    return await awaitable
