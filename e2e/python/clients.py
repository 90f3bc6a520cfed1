"""NVIDIA's four clients, used in one way."""

import asyncio
import atexit
import ssl

import tritonclient.grpc as grpc_client
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http as http_client
import tritonclient.http.aio as http_aio


class Waiting:
    """A client of asyncio whose calls are waited for, so that it is used like the others."""

    def __init__(self, module, url, **options):
        self.loop = asyncio.new_event_loop()
        self.client = self.loop.run_until_complete(self.open(module, url, options))
        atexit.register(lambda: self.loop.run_until_complete(self.client.close()))

    async def open(self, module, url, options):
        return module.InferenceServerClient(url, **options)

    def __getattr__(self, name):
        call = getattr(self.client, name)
        return lambda *arguments, **options: self.loop.run_until_complete(call(*arguments, **options))


def tls_options(ca):
    """Of the clients of gRPC, of HTTP and of HTTP with asyncio: for a server whose authority is in the file, if there is one."""
    if ca is None:
        return {}, {}, {}
    return (
        {"ssl": True, "root_certificates": ca},
        {"ssl": True, "ssl_options": {"ca_certs": ca}, "ssl_context_factory": ssl.create_default_context},
        {"ssl": True, "ssl_context": ssl.create_default_context(cafile=ca)},
    )


def open_clients(flags):
    """Name -> the module that makes its inputs, and the client itself, which waits for its answers."""
    grpc, http, http_asyncio = tls_options(getattr(flags, "ca", None))
    return {
        "grpc": (grpc_client, grpc_client.InferenceServerClient(flags.grpc, **grpc)),
        "http": (http_client, http_client.InferenceServerClient(flags.http, network_timeout=300, **http)),
        "grpc.aio": (grpc_client, Waiting(grpc_aio, flags.grpc, **grpc)),
        "http.aio": (http_client, Waiting(http_aio, flags.http, **http_asyncio)),
    }
