"""Loads a module, makes it fast where that changes nothing, and runs it."""
from __future__ import annotations

import os
import time

from triton_python_backend_utils import Logger

from .failures import LoadFailure, RequestFailure
from .results import flatten
from .samples import sample_inputs
from .torch_import import need_torch

#: TorchScript's executor profiles the first runs and compiles in the next.
_WARM_UP_RUNS = 4
#: Number of shapes of a model with variable extents that are compared between the plain and the optimised module.
_COMPARED_SHAPES = 2
#: Warm-up is a service to the first requests; a load does not wait longer for it.
_WARM_UP_SECONDS = 30.0
_TOLERANCE = 1e-5


def load_runner(config: dict, args: dict, parameters):
    """
    Loads the model's file onto its device. Returns the module as it was saved, and a function that makes the Runner once the
    ports are known.
    """
    model = args["model_name"]
    torch = need_torch(model)
    _apply(parameters, torch, model)
    device = _device(args, model, torch)
    path = _file(config, args, device, torch)
    module = _load(path, device, model, torch)
    if device is None:
        # KIND_MODEL: the model is on the devices that it was saved on; inputs go to that of its first weight.
        device = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))

    def make(ports) -> Runner:
        runner = Runner(module, ports, device, parameters, torch)
        ready = _Preparation(runner, model, torch).prepare()
        # The module that was run has changed itself: only a fresh one has the state that it was saved with.
        return runner if ready else Runner(_load(path, device, model, torch), ports, device, parameters, torch)

    return module, make


class Runner:
    """Runs a module on lists of inputs, one at a time."""

    def __init__(self, module, ports, device, parameters, torch):
        self.module = module
        self.device = device
        self.torch = torch
        self._ports = ports
        self._is_cleaning = parameters.is_cache_cleaned and device.type == "cuda"
        self._guard = torch.inference_mode if parameters.is_inference_mode else torch.no_grad
        self.parameters = parameters

    def run(self, inputs: list) -> list:
        """The results by index: tensors, or lists of str. Raises RequestFailure with what PyTorch said."""
        try:
            with self._guard():
                if self._ports.is_dict:
                    names = (port.name for port in self._ports.inputs)
                    return flatten(self.module(dict(zip(names, inputs))), self.torch)
                return flatten(self.module(*inputs), self.torch)
        except Exception as error:
            raise RequestFailure(f"PyTorch execute failure: {error}") from error
        finally:
            if self._is_cleaning:
                self.torch.cuda.empty_cache()

    def with_module(self, module) -> Runner:
        """The same with another module."""
        return Runner(module, self._ports, self.device, self.parameters, self.torch)

    def samples(self):
        """Inputs for trying the model out."""
        return sample_inputs(self._ports, self.torch, self.device)

    def close(self) -> None:
        """Lets go of the weights."""
        self.module = None


class _Preparation:
    """Finds inputs that a freshly loaded model runs on, freezes and optimises it, and runs it until it is warm."""

    def __init__(self, runner: Runner, model: str, torch):
        self._runner = runner
        self._model = model
        self._torch = torch
        self._deadline = time.monotonic() + _WARM_UP_SECONDS

    def prepare(self) -> bool:
        """False if the module keeps state that running it has changed."""
        if self._sets_attributes():
            self._say("keeps state between runs: it is neither optimised nor warmed up")
            return True
        before = self._marks()
        samples = self._usable_samples()
        if self._marks() != before:
            self._say("changes its own tensors when it runs: it is neither optimised nor warmed up")
            return False
        if not samples:
            return True
        if self._runner.parameters.is_optimized:
            self._optimise(samples)
        for inputs, _ in samples:
            self._warm_up(inputs)
        return True

    def _usable_samples(self) -> list:
        """Pairs of inputs and results. None is no failure to load: the values, or the shapes, may only not be what it expects."""
        usable, failure = [], None
        for inputs in self._runner.samples():
            if len(usable) == _COMPARED_SHAPES or time.monotonic() > self._deadline:
                break
            try:
                usable.append((inputs, self._runner.run(inputs)))
            except RequestFailure as error:
                failure = error
        if not usable:
            self._say(f"did not run on made-up inputs and is neither optimised nor warmed up: {failure}")
        return usable

    def _optimise(self, samples: list) -> None:
        module = self._runner.module
        if module.training:
            # A frozen module is one for inference; this one was saved as it trains, and is run so, as in Triton.
            self._say("was saved in training mode (without .eval()): it runs so, and is not optimised")
            return
        try:
            optimised = self._torch.jit.optimize_for_inference(self._torch.jit.freeze(module))
            candidate = self._runner.with_module(optimised)
            if all(_are_close(candidate.run(i), results, self._torch) for i, results in samples):
                self._runner.module = optimised
                return
            problem = f"optimisation changes results by more than {_TOLERANCE}"
        except Exception as error:
            problem = f"optimisation failed: {error}"
        self._say(f"runs as it was saved; {problem}")

    def _warm_up(self, inputs: list) -> None:
        for _ in range(_WARM_UP_RUNS):
            if time.monotonic() > self._deadline:
                return
            try:
                self._runner.run(inputs)
            except RequestFailure as error:
                self._say(f"failed in warm-up: {error}")
                return

    def _sets_attributes(self) -> bool:
        return "prim::SetAttr" in str(self._runner.module.inlined_graph)

    def _marks(self) -> list:
        """Changes with every write to a tensor of the module."""
        module = self._runner.module
        return [t._version for group in (module.parameters(), module.buffers()) for t in group]

    def _say(self, what: str) -> None:
        Logger.log_warn(f"model '{self._model}' {what}")


def _apply(parameters, torch, model: str) -> None:
    """Settings of the process; it runs nothing but this model."""
    torch.set_num_threads(parameters.intra_op_threads)
    if parameters.inter_op_threads is not None:
        torch.set_num_interop_threads(parameters.inter_op_threads)
    torch.set_grad_enabled(False)
    if parameters.is_cudnn_disabled:
        torch.backends.cudnn.enabled = False
    if not parameters.is_optimized:
        torch._C._set_graph_executor_optimize(False)
    for value, key, switch in (
        (parameters.is_profiling_executor, "ENABLE_JIT_EXECUTOR", "_jit_set_profiling_executor"),
        (parameters.is_profiling, "ENABLE_JIT_PROFILING", "_jit_set_profiling_mode"),
        (parameters.is_fusing, "ENABLE_TENSOR_FUSER", "_jit_set_texpr_fuser_enabled"),
    ):
        if value is None:
            continue
        if not hasattr(torch._C, switch):
            Logger.log_warn(f"parameter '{key}' of model '{model}' has no effect: PyTorch {torch.__version__} lacks it")
            continue
        getattr(torch._C, switch)(value)


def _device(args: dict, model: str, torch):
    """The instance's device; None lets the model choose. CUDA starts here, in the instance's own process."""
    kind = args["model_instance_kind"]
    if kind == "MODEL":
        return None
    if kind != "GPU":
        return torch.device("cpu")
    wanted = int(args["model_instance_device_id"])
    if not torch.cuda.is_available():
        built = (
            "was built without CUDA, want an image like step-python-cuda"
            if torch.version.cuda is None
            else "finds no CUDA device"
        )
        raise LoadFailure(
            f"failed to load model '{model}': its instance group asks for GPU {wanted}, and PyTorch "
            f"{torch.__version__} here {built}"
        )
    if wanted >= torch.cuda.device_count():
        raise LoadFailure(
            f"failed to load model '{model}': its instance group asks for GPU {wanted}, and there are "
            f"{torch.cuda.device_count()}"
        )
    torch.cuda.set_device(wanted)
    return torch.device("cuda", wanted)


def _file(config: dict, args: dict, device, torch) -> str:
    name = config.get("default_model_filename") or "model.pt"
    if device is not None and device.type == "cuda":
        capability = ".".join(str(part) for part in torch.cuda.get_device_capability(device))
        name = config.get("cc_model_filenames", {}).get(capability, name)
    path = os.path.join(args["model_repository"], args["model_version"], name)
    if not os.path.exists(path):
        raise LoadFailure(f"unable to find '{path}' for model instance '{args['model_instance_name']}'")
    return path


def _load(path: str, device, model: str, torch):
    try:
        module = torch.jit.load(path, map_location=device)
        if not hasattr(module, "forward"):
            raise RuntimeError("it has no method 'forward'")
        return module
    except Exception as error:
        hint = ""
        if "constants.pkl" in str(error) or "torch.load" in str(error):
            hint = " (the file is not TorchScript: it must be written by torch.jit.save)"
        raise LoadFailure(f"failed to load model '{model}': {error}{hint}") from error


def _are_close(results: list, wanted: list, torch) -> bool:
    return len(results) == len(wanted) and all(_is_close(a, b, torch) for a, b in zip(results, wanted))


def _is_close(result, wanted, torch) -> bool:
    if isinstance(result, list) or isinstance(wanted, list):
        return result == wanted
    if result.dtype != wanted.dtype or result.shape != wanted.shape:
        return False
    if not wanted.is_floating_point():
        return torch.equal(result, wanted)
    # In double precision: a half cannot hold its own tolerance.
    close = torch.allclose(
        result.double(), wanted.double(), rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True
    )
    return bool(close)
