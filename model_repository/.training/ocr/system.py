"""The OCR ensemble without a server: the models' own code and files, step after step."""

import numpy as np

from models import REPOSITORY, load_model, session
from ocr_configs import MODELS, ONNX, STEPS


class OcrSystem:
    def __init__(self):
        self.models = {}
        for name in MODELS:
            if name in ONNX:
                self.models[name] = session(REPOSITORY / name / "1" / "model.onnx")
            else:
                self.models[name] = load_model(name)

    def run(self, file):
        """The bytes of a picture -> every tensor of the ensemble, by its name there."""
        tensors = {"input_image": np.frombuffer(file, np.uint8)[None]}
        for name, sources, results in STEPS:
            values = self.step(name, [tensors[source] for source in sources])
            tensors.update(zip(results, values))
        return tensors

    def step(self, name, values):
        inputs, outputs = ([tensor for tensor, _, _ in side] for side in MODELS[name])
        model = self.models[name]
        if name in ONNX:
            return model.run(outputs, dict(zip(inputs, values)))
        utils = model.pb_utils
        request = utils.InferenceRequest([utils.Tensor(*pair) for pair in zip(inputs, values)])
        [response] = model.TritonPythonModel().execute([request])
        if response.has_error():
            raise ValueError(response.error().message())
        return [tensor.as_numpy() for tensor in response.output_tensors()]

    def boxes(self, tensors):
        """The boxes behind the words, in their order: the answer itself has none."""
        find = self.models["detection_postprocessing"].find_words
        return find(tensors["Sigmoid:0"][0], tensors["concat_3:0"][0])
