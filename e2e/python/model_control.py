"""What NVIDIA's own clients see of loading and unloading, in the mode explicit: the same over gRPC and HTTP.

The texts and states were measured on Triton 2.51. `--repository` names a folder that the checks may change, `--pristine` what it
is copied from before each of them.
"""

import json
import os
import shutil
import threading
import time

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.grpc import service_pb2, service_pb2_grpc

import behaviour
import grpc
from behaviour import ROW, refusal
from checks import CHECKS, check, read_flags, run
from waiting import until

CHECKS.clear()

POLL = "failed to load '{0}', failed to poll from model repository"
X = np.arange(3, dtype=np.float32)


class Client(behaviour.Client):
    """One protocol's client behind the few calls that the checks make."""

    def infer(self, model, version=""):
        return super().infer(model, {"x": X}, model_version=version).as_numpy("y")

    def chain(self, model):
        return super().infer(model, {"X": ROW}).as_numpy("Y")

    def error(self, call, *arguments, **options):
        error = refusal(call, *arguments, **options)
        return error.status(), error.message()

    def index(self):
        """(name, version) -> (state, reason)"""
        listed = self.client.get_model_repository_index()
        if not isinstance(listed, list):
            listed = [{f: getattr(m, f) for f in ("name", "version", "state", "reason")} for m in listed.models]
        return {
            (m["name"], m.get("version", "")): (m.get("state", ""), m.get("reason", "")) for m in listed
        }

    def settled(self, wanted):
        """Returns once the index says what is wanted; unloading goes on in the background."""
        until(f"the index says {wanted}", lambda: wanted.items() <= self.index().items())


class Env:
    def __init__(self, flags):
        self.flags = flags
        self.clients = {"grpc": Client(grpc_client, flags.grpc), "http": Client(http_client, flags.http)}
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(flags.grpc))

    def each(self):
        """Both protocols, each on a fresh repository with nothing loaded."""
        for name, client in self.clients.items():
            self.fresh()
            yield name, client

    def fresh(self):
        client = self.clients["grpc"]
        for (name, _), (state, _) in client.index().items():
            if state in ("READY", "LOADING"):
                client.client.unload_model(name)
        for entry in os.listdir(self.flags.repository):
            shutil.rmtree(self.path(entry))
        shutil.copytree(self.flags.pristine, self.flags.repository, dirs_exist_ok=True)
        busy = ("READY", "LOADING", "UNLOADING")
        until("all is unloaded", lambda: all(state not in busy for state, _ in client.index().values()))

    def path(self, *parts):
        return os.path.join(self.flags.repository, *parts)

    def file(self, *parts):
        with open(self.path(*parts), "rb") as file:
            return file.read()

    def write(self, contents, *parts):
        os.makedirs(os.path.dirname(self.path(*parts)), exist_ok=True)
        with open(self.path(*parts), "wb") as file:
            file.write(contents)


READY = ("READY", "")
UNLOADED = ("UNAVAILABLE", "unloaded")
VERSIONED = {
    "platform": "onnxruntime_onnx",
    "max_batch_size": 0,
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1]}],
    "instance_group": [{"kind": "KIND_CPU", "count": 1}],
}


@check
def nothing_is_loaded_by_itself(env):
    """at the start nothing is loaded, the index has names only, and the server is ready"""
    for _, c in env.each():
        assert c.client.is_server_ready()
        assert not c.client.is_model_ready("never_loaded")
        index = c.index()
        assert index[("never_loaded", "")] == ("", ""), index
        status, text = c.error(c.infer, "never_loaded")
        assert text == "Request for unknown model: 'never_loaded' is not found", text


@check
def load_and_unload(env):
    """a model is loaded with the versions of its policy, answers, and is gone after unload"""
    for protocol, c in env.each():
        c.client.load_model("versioned")
        index = c.index()
        assert index[("versioned", "1")] == READY and index[("versioned", "3")] == READY, index
        assert np.array_equal(c.infer("versioned"), X + 3)
        assert np.array_equal(c.infer("versioned", "1"), X + 1)
        c.client.unload_model("versioned")
        assert not c.client.is_model_ready("versioned")
        status, text = c.error(c.infer, "versioned")
        assert text == "Request for unknown model: 'versioned' has no available versions", text
        assert status == {"grpc": "StatusCode.NOT_FOUND", "http": "404"}[protocol], status
        status, text = c.error(c.infer, "versioned", "1")
        assert text == "Request for unknown model: 'versioned' version 1 is not at ready state", text
        assert status == {"grpc": "StatusCode.UNAVAILABLE", "http": "503"}[protocol], status
        status, text = c.error(c.infer, "versioned", "2")
        assert text == "Request for unknown model: 'versioned' version 2 is not found", text
        c.settled({("versioned", "1"): UNLOADED, ("versioned", "3"): UNLOADED})
        assert c.client.is_server_ready()
        _, text = c.error(c.client.get_inference_statistics, "versioned")
        assert text == "requested model 'versioned' is not available", text


@check
def nothing_to_poll(env):
    """what cannot be read is INTERNAL with Triton's words, and the true reason after them"""
    reasons = {
        "nosuch": "no model repository has a directory 'nosuch'",
        "syntax_error": "line 7, column 15",
    }
    for protocol, c in env.each():
        for name, reason in reasons.items():
            status, text = c.error(c.client.load_model, name)
            assert text.startswith(POLL.format(name) + ": "), text
            assert reason in text, text
            assert status == {"grpc": "StatusCode.INTERNAL", "http": "500"}[protocol], status
    for name, reason in {
        "": "Model name cannot be empty. Please enter a valid name to deploy.",
        "..": "invalid model name '..', model name must not contain path traversal characters",
        " .. ": "must not contain path traversal characters",
        "a/b": "invalid model name 'a/b', model name must not contain path traversal characters",
        "../x": "must not contain path traversal characters",
        ".git": "must not begin with a dot",
        "x" * 300: "want at most 255 bytes",
    }.items():
        code, text = raw_load(env, name)
        assert code == "INTERNAL" and text.startswith(POLL.format(name) + ": "), (code, text)
        assert reason in text, text


@check
def failed_load(env):
    """what was read but cannot be served is INVALID_ARGUMENT, one clause a version"""
    for protocol, c in env.each():
        status, text = c.error(c.client.load_model, "truncated_onnx")
        start = "load failed for model 'truncated_onnx': version 1 is at UNAVAILABLE state: Internal: "
        assert text.startswith(start) and text.endswith(";\n"), repr(text)
        assert status == {"grpc": "StatusCode.INVALID_ARGUMENT", "http": "400"}[protocol], status
        state, reason = c.index()[("truncated_onnx", "1")]
        assert state == "UNAVAILABLE" and reason.startswith("Internal: not a valid ONNX model"), reason
        _, text = c.error(c.client.load_model, "missing_version")
        assert text == (
            "load failed for model 'missing_version': at least one version must be available "
            "under the version policy of model 'missing_version'\n"
        ), repr(text)
        _, text = c.error(c.client.load_model, "ens_missing_model")
        assert text == (
            "load failed for model 'ens_missing_model': ensemble ens_missing_model contains models "
            "that are not available or ambiguous: no_such_model\n"
        ), repr(text)
        _, text = c.error(c.client.load_model, "ens_over_truncated")
        assert text.startswith(
            "load failed for model 'ens_over_truncated': ensemble 'ens_over_truncated' depends on "
            "'truncated_onnx' which has no loaded version. Model 'truncated_onnx' loading failed with "
            "error: version 1 is at UNAVAILABLE state: Internal: not a valid ONNX model"
        ), repr(text)
        assert not c.client.is_server_ready(), "what failed holds strict readiness back, as in Triton"
        c.client.unload_model("truncated_onnx")
        assert not c.client.is_server_ready()
        env.write(env.file("versioned", "1", "model.onnx"), "truncated_onnx", "1", "model.onnx")
        c.client.load_model("truncated_onnx")
        assert not c.client.is_server_ready(), "a model without a version does, too"
        c.client.unload_model("missing_version")
        assert c.client.is_server_ready()


@check
def versions_are_all_or_nothing(env):
    """one version that fails keeps all that was served, and its fix takes effect"""
    for _, c in env.each():
        c.client.load_model("versioned")
        good = env.file("versioned", "3", "model.onnx")
        env.write(env.file("versioned", "2", "model.onnx"), "versioned", "1", "model.onnx")
        env.write(b"not a model", "versioned", "3", "model.onnx")
        for _ in range(2):
            _, text = c.error(c.client.load_model, "versioned")
            assert text.startswith("load failed for model 'versioned': version 3 is at UNAVAILABLE state: "), text
            assert "version 1" not in text, text
            assert np.array_equal(c.infer("versioned", "1"), X + 1), "the old version 1 serves"
            assert c.index()[("versioned", "3")] == READY
        env.write(good, "versioned", "3", "model.onnx")
        c.client.load_model("versioned")
        assert np.array_equal(c.infer("versioned", "1"), X + 2), "the new version 1 serves"


@check
def unload_of_a_composing_model(env):
    """unloading a composing model takes the ensembles over it down, and loading it brings them back"""
    for _, c in env.each():
        c.client.load_model("ens_nested")
        c.client.unload_model("add_one_batch")
        for name in ("ens_nested", "ens_chain"):
            state, reason = c.index()[(name, "1")]
            assert state == "UNAVAILABLE" and reason.startswith("unloaded: ensemble "), reason
            _, text = c.error(c.chain, name)
            assert text == f"Request for unknown model: '{name}' has no available versions", text
        c.settled({("add_one_batch", "1"): UNLOADED})
        assert c.client.is_server_ready()
        c.client.load_model("add_one_batch")
        assert np.array_equal(c.chain("ens_nested"), ROW + 3)
        c.client.unload_model("ens_chain")
        assert c.index()[("ens_nested", "1")][1].startswith("unloaded: ensemble ")
        c.client.load_model("add_one_batch")
        assert c.index()[("ens_chain", "1")] == UNLOADED, "what a user unloaded is not brought back"


@check
def config_override(env):
    """a config in the request replaces config.pbtxt, over plain loads too, until the model is unloaded"""
    for _, c in env.each():
        config = dict(VERSIONED, version_policy={"specific": {"versions": [2]}}, parameters={"k": {"string_value": "v"}})
        c.client.load_model("versioned", config=json.dumps(config))
        assert np.array_equal(c.infer("versioned"), X + 2)
        assert dict(served_config(env, "versioned").parameters)["k"].string_value == "v"
        c.client.load_model("versioned")
        assert np.array_equal(c.infer("versioned"), X + 2)
        c.client.unload_model("versioned")
        c.client.load_model("versioned")
        assert np.array_equal(c.infer("versioned"), X + 3)
        assert not served_config(env, "versioned").parameters
        _, text = c.error(c.client.load_model, "nosuch", config=json.dumps(VERSIONED))
        assert text.startswith(POLL.format("nosuch") + ": "), text


@check
def file_override(env):
    """files in the request are the whole model directory, and leave nothing behind"""
    for _, c in env.each():
        c.client.load_model("versioned")
        files = {"file:1/model.onnx": env.file("versioned", "2", "model.onnx"), "file:7/model.onnx": env.file("versioned", "1", "model.onnx")}
        config = json.dumps(dict(VERSIONED, version_policy={"all": {}}))
        c.client.load_model("versioned", config=config, files=files)
        assert np.array_equal(c.infer("versioned", "1"), X + 2)
        assert np.array_equal(c.infer("versioned", "7"), X + 1)
        c.settled({("versioned", "3"): UNLOADED})
        bad = dict(files)
        bad["file:7/model.onnx"] = b"no model"
        _, text = c.error(c.client.load_model, "versioned", config=config, files=bad)
        assert text.startswith("load failed for model 'versioned': version 7 is at UNAVAILABLE state: "), text
        assert np.array_equal(c.infer("versioned", "7"), X + 1), "what was served serves on"
        c.client.load_model("versioned")
        assert np.array_equal(c.infer("versioned"), X + 3)
        c.client.load_model("in_memory", config=config, files=files)
        assert np.array_equal(c.infer("in_memory"), X + 1)
        c.client.unload_model("in_memory")


@check
def parameters_of_the_wrong_kind(env):
    """parameters of another type or name are refused with Triton's words"""
    cases = [
        ({"config": b"x"}, "INVALID_ARGUMENT", "invalid value type for load parameter 'config', expected string_param."),
        ({"config": True}, "INVALID_ARGUMENT", "invalid value type for load parameter 'config', expected string_param."),
        ({"file:1/m": "x"}, "INVALID_ARGUMENT", "invalid value type for load parameter 'file:1/m', expected bytes_param."),
        ({"file:1/m": 5}, "INVALID_ARGUMENT", "invalid value type for load parameter 'file:1/m', expected bytes_param."),
        ({"foo": "x"}, "INVALID_ARGUMENT", "unrecognized load parameter 'foo'."),
        ({"file:1/m": b"x"}, "INTERNAL", "Load parameter 'config' must be specified for model file override"),
        ({"config": "{bad"}, "INTERNAL", "Invalid config override: "),
        ({"config": "[]"}, "INTERNAL", "Invalid config override: "),
        ({"config": '{"max_batchsize": 1}'}, "INTERNAL", "Invalid config override: "),
        ({"config": '{"name": "zz", "platform": "onnxruntime_onnx"}'}, "INTERNAL", "unexpected directory name 'versioned' for model 'zz'"),
    ]
    config = json.dumps(VERSIONED)
    for path in ("../../evil", "/etc/evil", "1/../../evil", "", "1//m", "1/./m", "1/a\\b", "1/" + "x" * 256, "a" * 2000, "1/\x00"):
        cases.append(({"config": config, "file:" + path: b"x"}, "INTERNAL", "load parameter 'file:"))
    cases.append(({"config": config, "file:1/m": b"x", "file:1/m/n": b"x"}, "INTERNAL", "another file lies in it"))
    env.fresh()
    env.clients["grpc"].client.load_model("versioned")
    for parameters, code, text in cases:
        got = raw_load(env, "versioned", parameters)
        assert got[0] == code and text in got[1], (parameters, got)
        if code == "INTERNAL":
            assert got[1].startswith(POLL.format("versioned") + ": "), got
    assert np.array_equal(env.clients["grpc"].infer("versioned"), X + 3)
    code, text = raw_load(env, "versioned", {}, repository_name="r")
    assert (code, text) == ("UNIMPLEMENTED", "'repository_name' specification is not supported")
    for value in ("x", 5):
        request = service_pb2.RepositoryModelUnloadRequest(model_name="versioned")
        put(request, "unload_dependents", value)
        code, text = outcome(env.stub.RepositoryModelUnload, request)
        assert text == "invalid value type for 'unload_dependents' parameter, expected bool_param.", text
    for name in ("nosuch", "", "../x"):
        assert outcome(env.stub.RepositoryModelUnload, service_pb2.RepositoryModelUnloadRequest(model_name=name)) == "OK"


@check
def no_request_is_lost_by_reloads(env):
    """clients that never stop asking see the old or the new answer of every reload, of a model and an ensemble over it"""
    for protocol, c in env.each():
        c.client.load_model("ens_versioned")
        models = [env.file("versioned", v, "model.onnx") for v in ("2", "3")]
        stop = threading.Event()
        faults = []
        counts = [0, 0]

        def ask(which):
            own = Client(c.module, env.flags.grpc if protocol == "grpc" else env.flags.http)
            name, offsets = (("versioned", {2, 3}), ("ens_versioned", {3, 4}))[which]
            while not stop.is_set():
                try:
                    offset = float((own.infer(name) - X)[0])
                    if offset not in offsets:
                        faults.append(f"{name}: {offset}")
                except Exception as error:  # whatever it is, it is a lost request
                    faults.append(f"{name}: {error}")
                counts[which] += 1

        threads = [threading.Thread(target=ask, args=(i % 2,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for i in range(8):
            before = list(counts)
            env.write(models[i % 2], "versioned", "3", "model.onnx")
            c.client.load_model("versioned")
            while any(count < was + 3 for count, was in zip(counts, before)) and not faults:
                time.sleep(0.01)
        stop.set()
        for thread in threads:
            thread.join()
        assert not faults, faults[:3]


def served_config(env, name):
    return env.stub.ModelConfig(service_pb2.ModelConfigRequest(name=name)).config


def put(request, key, value):
    parameter = request.parameters[key]
    if isinstance(value, bool):
        parameter.bool_param = value
    elif isinstance(value, int):
        parameter.int64_param = value
    elif isinstance(value, str):
        parameter.string_param = value
    else:
        parameter.bytes_param = value


def raw_load(env, name, parameters=None, **fields):
    """(code, text) of a load that is refused; the client library could not send it."""
    request = service_pb2.RepositoryModelLoadRequest(model_name=name, **fields)
    for key, value in (parameters or {}).items():
        put(request, key, value)
    return outcome(env.stub.RepositoryModelLoad, request)


def outcome(call, request):
    try:
        call(request)
        return "OK"
    except grpc.RpcError as error:
        return error.code().name, error.details()


if __name__ == "__main__":
    run(Env(read_flags("grpc", "http", "repository", "pristine")))
