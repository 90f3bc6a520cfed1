"""Serves a TorchScript model.pt as if it were a Python model: the model class of the `pytorch` engine."""
from __future__ import annotations

import json

from tutti_ts.batch import answer
from tutti_ts.failures import LoadFailure
from tutti_ts.parameters import read_parameters
from tutti_ts.ports import read_ports
from tutti_ts.runtime import load_runner


class TritonPythonModel:
    """One instance of the model. What fails to load raises LoadFailure, whose text is meant to be shown as it is."""

    def initialize(self, args: dict) -> None:
        """`args` as for every Python model; the file is the version folder's model.pt, or what the configuration names."""
        config = json.loads(args["model_config"])
        name = args["model_name"]
        try:
            settings = read_parameters(config, name)
            module, runner = load_runner(config, args, settings)
            self._ports = read_ports(config, name, module)
            self._runner = runner(self._ports)
        except LoadFailure:
            raise
        except MemoryError:
            raise LoadFailure(f"failed to load model '{name}': not enough memory") from None

    def execute(self, requests: list) -> list:
        """One response per request; errors are in the responses, so that a request fails alone where it can."""
        return answer(self._ports, self._runner, requests)

    def finalize(self) -> None:
        """Lets go of the weights."""
        self._runner.close()
