"""The configuration as `auto_complete_config` completes it, and questions to a configuration."""
from __future__ import annotations

import copy
import json


class ModelConfig:
    """The configuration that `auto_complete_config` gets, changes and returns. A change that contradicts it raises ValueError."""

    def __init__(self, model_config: str):
        self._model_config = json.loads(model_config)
        for field, default in (("max_batch_size", 0), ("input", []), ("output", []), ("name", "")):
            self._model_config.setdefault(field, default)

    def as_dict(self) -> dict:
        """The configuration; to be read, not changed."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Sets the greatest batch; the configuration's own may not be larger."""
        configured = self._model_config["max_batch_size"]
        if configured > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {configured}, but in auto-complete-config function for "
                f"model '{self._name}' specified max_batch_size {max_batch_size}"
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Lets the server batch requests, unless the configuration names another scheduler."""
        for other in ("sequence_batching", "ensemble_scheduling"):
            if other in self._model_config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{other}', but auto-complete-config function for "
                    f"model '{self._name}' tries to set scheduling_choice as 'dynamic_batching'"
                )
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input: dict) -> None:
        """Adds an input: name, data_type (TYPE_FP32), dims, and optional. One of that name must agree."""
        self._add("input", input, ("name", "data_type", "dims", "optional"), "'name', 'data_type', 'dims' and 'optional'")

    def add_output(self, output: dict) -> None:
        """Adds an output: name, data_type (TYPE_FP32) and dims. One of that name must agree."""
        self._add("output", output, ("name", "data_type", "dims"), "'name', 'data_type' and 'dims'")

    def set_model_transaction_policy(self, transaction_policy_dict: dict) -> None:
        """Sets `decoupled`; the configuration's own, if it has one, must be the same."""
        for key in transaction_policy_dict:
            if key != "decoupled":
                raise ValueError(
                    f"model transaction property in auto-complete-config function for model '{self._name}' contains "
                    "property other than 'decoupled'."
                )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        wanted = transaction_policy_dict["decoupled"]
        if policy.get("decoupled", wanted) != wanted:
            raise ValueError(
                f"trying to change decoupled property in auto-complete-config for model '{self._name}', which is "
                f"already set to '{policy['decoupled']}'."
            )
        policy["decoupled"] = wanted

    @property
    def _name(self) -> str:
        return self._model_config["name"]

    def _add(self, kind: str, port: dict, known: tuple, known_text: str) -> None:
        where = f"in auto-complete-config function for model '{self._name}'"
        if "name" not in port:
            raise ValueError(f"{kind} {where} is missing 'name' property.")
        for key in port:
            if key not in known:
                raise ValueError(
                    f"{kind} '{port['name']}' {where} contains property other than {known_text}."
                )
        for key in ("data_type", "dims"):
            if key not in port:
                raise ValueError(f"{kind} '{port['name']}' {where} is missing '{key}' property.")
        for configured in self._model_config[kind]:
            if configured["name"] == port["name"]:
                self._merge(kind, configured, port)
                return
        self._model_config[kind].append(copy.deepcopy(port))

    def _merge(self, kind: str, configured: dict, port: dict) -> None:
        name = port["name"]
        datatype = configured.get("data_type", "TYPE_INVALID")
        if datatype not in ("TYPE_INVALID", port["data_type"]):
            raise ValueError(
                f"unable to load model '{self._name}', configuration expects datatype {datatype} for {kind} '{name}', "
                f"model provides {port['data_type']}"
            )
        dims = configured.get("dims")
        if dims and dims != port["dims"]:
            raise ValueError(
                f"model '{self._name}', tensor '{name}': the model expects dims {port['dims']} but the model "
                f"configuration specifies dims {dims}"
            )
        optional = port.get("optional", configured.get("optional"))
        if configured.get("optional", optional) != optional:
            raise ValueError(
                f"model '{self._name}', tensor '{name}': the model expects optional {optional} but the model "
                f"configuration specifies optional {configured['optional']}"
            )
        configured.update(copy.deepcopy(port))


def get_input_config_by_name(model_config: dict, name: str) -> dict | None:
    """An input of a configuration, or None."""
    return _by_name(model_config, "input", name)


def get_output_config_by_name(model_config: dict, name: str) -> dict | None:
    """An output of a configuration, or None."""
    return _by_name(model_config, "output", name)


def using_decoupled_model_transaction_policy(model_config: dict) -> bool:
    """Whether the model answers a request with any number of responses."""
    return "model_transaction_policy" in model_config and bool(
        model_config["model_transaction_policy"].get("decoupled", False)
    )


def _by_name(model_config: dict, kind: str, name: str) -> dict | None:
    for port in model_config[kind] if kind in model_config else []:
        if port["name"] == name:
            return port
    return None
