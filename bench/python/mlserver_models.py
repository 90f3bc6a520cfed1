"""The models of the comparison for MLServer, in one runtime each. It has no ensembles: three sessions are chained here."""

import os

import numpy
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse

STEPS = ["pre_gfpgan", "infer_face_restoration_v2.1", "post_gfpgan"]


class AddSub(MLModel):
    async def predict(self, payload):
        a, b = (NumpyCodec.decode_input(one) for one in payload.inputs)
        outputs = [NumpyCodec.encode_output("OUTPUT0", a + b), NumpyCodec.encode_output("OUTPUT1", a - b)]
        return InferenceResponse(model_name=self.name, outputs=outputs)


class Face(MLModel):
    async def load(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.sessions = [
            onnxruntime.InferenceSession(
                os.path.join(os.environ["TUTTI_BENCH_MODELS"], name, "1", "model.onnx"),
                options,
                providers=["CPUExecutionProvider"],
            )
            for name in STEPS
        ]
        return True

    async def predict(self, payload):
        made = NumpyCodec.decode_input(payload.inputs[0]).astype(numpy.uint8, copy=False)
        for session in self.sessions:
            (made,) = session.run(["output__0"], {"input__0": made})
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("image_out", made)])
