"""What NVIDIA's clients outside of a cluster get through its ingress with TLS: two ensembles on one host, one behind a token on
another; streams; large messages; and no way to load, unload or set anything. `--shared` is the host of the ensembles `one` and `two`, `--guarded` that of
`guarded`, `--ca` the authority of the server, PEM.
"""

import queue

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client

from behaviour import refusal
from checks import CHECKS, check, read_flags, run
from clients import tls_options
from waiting import LIMIT_SECONDS

CHECKS.clear()

# 64 MB of FP32; with what REST adds, the most that is taken of a body by default.
LARGE = 16_000_000
ROUNDS = 20


class Host:
    """The clients of one host."""

    def __init__(self, host, flags):
        grpc, http, _ = tls_options(flags.ca)
        address = f"{host}:{flags.port}"
        self.grpc = grpc_client.InferenceServerClient(address, **grpc)
        self.http = http_client.InferenceServerClient(address, network_timeout=300, **http)

    def both(self):
        return ((grpc_client, self.grpc), (http_client, self.http))


class Env:
    def __init__(self, flags):
        self.shared = Host(flags.shared, flags)
        self.guarded = Host(flags.guarded, flags)
        self.authorization = f"Bearer {flags.token}"

    @property
    def token(self):
        """A new one each time: the client of HTTP adds to the headers that it is given."""
        return {"authorization": self.authorization}


class Stream:
    """A stream that asks an ensemble which adds to one number."""

    def __init__(self, client, model):
        self.client, self.model, self.answers = client, model, queue.Queue()
        client.start_stream(lambda result, error: self.answers.put((result, error)))

    def ask(self):
        self.client.async_stream_infer(self.model, [tensor(grpc_client, np.ones(1, np.float32))])
        result, error = self.answers.get(timeout=LIMIT_SECONDS)
        if error is not None:
            raise error
        return result.as_numpy("y")[0]


def tensor(module, array):
    made = module.InferInput("x", array.shape, "FP32")
    made.set_data_from_numpy(array)
    return made


def ask(module, client, model, array, **options):
    return client.infer(model, [tensor(module, array)], **options).as_numpy("y")


@check
def shared_host(env):
    """two Ensembles share a host, which leads to them and not to the Models behind them"""
    values = np.array([1, -2.5], np.float32)
    for module, client in env.shared.both():
        for model, added in (("one", 1), ("two", 4)):
            assert np.array_equal(ask(module, client, model, values), values + added), (module, model)
        error = refusal(ask, module, client, "first", values)
        assert "Request for unknown model: 'first' is not found" in error.message(), error
        names = client.get_model_repository_index()
        names = [entry.name for entry in names.models] if module is grpc_client else [entry["name"] for entry in names]
        assert sorted(names) == ["one", "two"], names


@check
def token(env):
    """an Ensemble with a token answers only calls that bring it"""
    values = np.ones(1, np.float32)
    for (module, client), code in zip(env.guarded.both(), ("StatusCode.UNAUTHENTICATED", "401")):
        for headers in ({}, {"authorization": "Bearer another"}):
            error = refusal(ask, module, client, "guarded", values, headers=headers)
            assert error.status() == code and "bearer token" in error.message(), error
        assert ask(module, client, "guarded", values, headers=env.token) == [2]


@check
def administration(env):
    """nothing is loaded, unloaded or set from outside"""
    for host, has_token in ((env.shared, False), (env.guarded, True)):
        for _, client in host.both():
            for call, arguments in (
                (client.load_model, ("one",)),
                (client.unload_model, ("one",)),
                (client.update_log_settings, ({"log_verbose_level": 1},)),
                (client.update_trace_settings, (None, {"trace_rate": "1"})),
                (client.register_system_shared_memory, ("region", "/key", 1)),
            ):
                refusal(call, *arguments, headers=env.token if has_token else None)
    assert ask(grpc_client, env.shared.grpc, "one", np.ones(1, np.float32)) == [2], "it is served as before"


@check
def large(env):
    """messages of 64 MB pass in both directions"""
    values = np.arange(LARGE, dtype=np.float32) % 1000
    for module, client in env.shared.both():
        assert np.array_equal(ask(module, client, "one", values), values + 1), module


@check
def stream(env):
    """a stream goes in both directions"""
    made = Stream(env.shared.grpc, "two")
    for _ in range(ROUNDS):
        assert made.ask() == 5
    env.shared.grpc.stop_stream()


if __name__ == "__main__":
    run(Env(read_flags("port", "ca", "shared", "guarded", "token")))
