"""Where coroutines of a model run: `execute` itself, and the tasks that it starts."""

from __future__ import annotations

import asyncio
import threading
import traceback


class Coroutines:
    """
    One event loop of an instance, in a thread of its own. It keeps running when `execute` has returned, so tasks that a model has started
    go on: they may answer by senders, fill caches, gather batches.
    """

    def __init__(self):
        # Made for the first coroutine: most models have none.
        self._loop = None

    def start(self, coroutine):
        """Runs a coroutine beside whatever else runs, in a copy of this context. It must raise nothing."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            # As in Triton, code of this thread that asks for a loop gets this one.
            asyncio.set_event_loop(self._loop)
            threading.Thread(target=keep_running, args=(self._loop,), name="tutti-coroutines", daemon=True).start()
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, coroutine):
        """Waits for a coroutine. Returns what it returns, raises what it raises."""
        outcome = Outcome()
        self.start(outcome.of(coroutine))
        return outcome.wait()


class Outcome:
    """
    How a coroutine ended. A future of asyncio would hold what it returned for longer than the caller does, and the server looks at who
    holds memory of requests.
    """

    __slots__ = ("_done", "_returned", "_error")

    def __init__(self):
        self._done = threading.Event()
        self._returned = None
        self._error = None

    async def of(self, coroutine):
        try:
            self._returned = await coroutine
        except BaseException as error:
            self._error = error
        self._done.set()

    def wait(self):
        """Returns or raises it, once."""
        self._done.wait()
        returned, error = self._returned, self._error
        self._returned = self._error = None
        if error is None:
            return returned
        try:
            raise error
        finally:
            # Else it would refer to itself, by this frame, and to what the model's frames have.
            del error


def keep_running(loop):
    """SystemExit of a task ends `run_forever`; the other tasks are to go on."""
    while True:
        try:
            loop.run_forever()
        except BaseException:
            traceback.print_exc()
