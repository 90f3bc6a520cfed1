"""The `parameters` of a pytorch model's configuration: each works, is refused, or is logged as without effect."""
from __future__ import annotations

from typing import NamedTuple, Optional

from triton_python_backend_utils import Logger

from .failures import LoadFailure

_TRUE, _FALSE = ("true", "1"), ("false", "0")
#: Why a parameter that Triton knows does nothing here.
_WITHOUT_EFFECT = {
    "ENABLE_WEIGHT_SHARING": "each instance is a process with weights of its own",
    "ENABLE_NVFUSER": "PyTorch has dropped this fuser",
    "TORCH_COMPILE_OPTIONAL_PARAMETERS": "TorchScript models are not compiled with torch.compile",
    "ENABLE_TORCH_PARALLEL": "TorchScript models run as they were saved",
}
#: Parameters that the engine that runs this process has seen to.
_OF_THE_PROCESS = (
    "EXECUTION_ENV_PATH",
    "FORCE_CPU_ONLY_INPUT_TENSORS",
    "SHM_DEFAULT_BYTE_SIZE",
    "SHM_GROWTH_BYTE_SIZE",
    "SHM_MAX_BYTE_SIZE",
    "SHM_REGION_PREFIX_NAME",
)


class Parameters(NamedTuple):
    """The parameters that are set. None leaves PyTorch's own setting."""

    is_optimized: bool
    is_inference_mode: bool
    is_cache_cleaned: bool
    is_cudnn_disabled: bool
    intra_op_threads: int
    inter_op_threads: Optional[int]
    is_profiling_executor: Optional[bool]
    is_profiling: Optional[bool]
    is_fusing: Optional[bool]


def read_parameters(config: dict, model: str) -> Parameters:
    """Reads the configuration's parameters. Raises LoadFailure for a value that cannot be."""
    source = _Source(config.get("parameters", {}), model)
    parameters = Parameters(
        is_optimized=not source.flag("DISABLE_OPTIMIZED_EXECUTION", False),
        is_inference_mode=source.flag("INFERENCE_MODE", True),
        is_cache_cleaned=source.flag("ENABLE_CACHE_CLEANING", False),
        is_cudnn_disabled=source.flag("DISABLE_CUDNN", False),
        # Triton leaves PyTorch's default, a thread per core; instances then work against each other.
        intra_op_threads=source.threads("INTRA_OP_THREAD_COUNT", "NUM_THREADS") or 1,
        inter_op_threads=source.threads("INTER_OP_THREAD_COUNT", "NUM_INTEROP_THREADS"),
        is_profiling_executor=source.flag("ENABLE_JIT_EXECUTOR", None),
        is_profiling=source.flag("ENABLE_JIT_PROFILING", None),
        is_fusing=source.flag("ENABLE_TENSOR_FUSER", None),
    )
    for key in source.unread():
        reason = _WITHOUT_EFFECT.get(key, "it is not known")
        Logger.log_warn(f"parameter '{key}' of model '{model}' has no effect: {reason}")
    return parameters


class _Source:
    """The parameters as they are written, and which of them have been read."""

    def __init__(self, parameters: dict, model: str):
        self._values = {key: value.get("string_value", "") for key, value in parameters.items()}
        self._model = model
        self._read = set(_OF_THE_PROCESS)

    def flag(self, key: str, default):
        text = self._take(key)
        if text is None:
            return default
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
        raise self._refused(key, text, "true or false")

    def threads(self, *keys: str):
        """A number of threads that has two names; None if neither is set."""
        found = {}
        for key in keys:
            text = self._take(key)
            if text is None:
                continue
            if not text.isdigit() or int(text) == 0:
                raise self._refused(key, text, "a number of threads, 1 or more")
            found[key] = int(text)
        if len(set(found.values())) > 1:
            said = " and ".join(f"'{key}' is {count}" for key, count in found.items())
            raise LoadFailure(f"failed to load model '{self._model}': parameters {said}, they are one setting")
        return next(iter(found.values()), None)

    def unread(self) -> list:
        return sorted(set(self._values) - self._read)

    def _take(self, key: str):
        self._read.add(key)
        return self._values.get(key)

    def _refused(self, key: str, text: str, wanted: str) -> LoadFailure:
        return LoadFailure(
            f"failed to load model '{self._model}': parameter '{key}' must be {wanted}, got '{text}'"
        )
