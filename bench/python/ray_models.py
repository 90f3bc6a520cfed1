"""Ray Serve with the models of the comparison: ray_models.py PORT HTTP-PORT FOLDER-OF-ONNX-FILES. Says "ready" when it serves."""

import os
import sys
import time

import numpy
import onnxruntime
import ray
from ray import serve
from ray.serve.config import gRPCOptions
from tritonclient.grpc import service_pb2

PORT, HTTP_PORT, MODELS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
STEPS = ["pre_gfpgan", "infer_face_restoration_v2.1", "post_gfpgan"]
# Two cores are shared by all; none is reserved.
REPLICA = {"num_cpus": 0}


def answer(request, outputs):
    message = service_pb2.ModelInferResponse(model_name=request.model_name, model_version="1")
    for name, datatype, array in outputs:
        message.outputs.add(name=name, datatype=datatype, shape=array.shape)
        message.raw_output_contents.append(array.tobytes())
    return message


@serve.deployment(ray_actor_options=REPLICA, max_ongoing_requests=64)
class Step:
    def __init__(self, name):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = os.path.join(MODELS, name, "1", "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, fed):
        (made,) = self.session.run(["output__0"], {"input__0": fed})
        return made


# Where requests arrive: small models run here, larger ones in processes of their own.
@serve.deployment(num_replicas=2, ray_actor_options=REPLICA, max_ongoing_requests=64)
class Models:
    def __init__(self, *steps):
        self.steps = steps

    async def ModelInfer(self, request):
        return self.add_sub(request) if request.model_name == "py_add_sub" else await self.face(request)

    def add_sub(self, request):
        a, b = (
            numpy.frombuffer(raw, numpy.int32).reshape(list(tensor.shape))
            for tensor, raw in zip(request.inputs, request.raw_input_contents)
        )
        return answer(request, [("OUTPUT0", "INT32", a + b), ("OUTPUT1", "INT32", a - b)])

    async def face(self, request):
        made = numpy.frombuffer(request.raw_input_contents[0], numpy.uint8)
        made = made.reshape(list(request.inputs[0].shape))
        for step in self.steps:
            # A response that is not awaited goes to the next step without a way through here.
            made = step.run.remote(made)
        return answer(request, [("image_out", "UINT8", await made)])


ray.init(
    num_cpus=2,
    include_dashboard=False,
    object_store_memory=512 * 1024 * 1024,
    log_to_driver=False,
    _node_ip_address="127.0.0.1",
)
serve.start(
    http_options={"host": "127.0.0.1", "port": HTTP_PORT},
    grpc_options=gRPCOptions(
        port=PORT,
        grpc_servicer_functions=["tritonclient.grpc.service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server"],
    ),
)
steps = [Step.options(name=f"Step{i}").bind(name) for i, name in enumerate(STEPS)]
serve.run(Models.bind(*steps))
print("ready", flush=True)
while True:
    time.sleep(3600)
