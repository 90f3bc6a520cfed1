"""ask.py PROMPT [SEED]"""

import queue
import sys

import numpy as np
import tritonclient.grpc as triton

answers = queue.Queue()
prompt = np.array([sys.argv[1].encode()], np.object_)
seed = np.array([int(sys.argv[2]) if len(sys.argv) > 2 else 0])
inputs = [
    triton.InferInput("prompt", [1], "BYTES").set_data_from_numpy(prompt),
    triton.InferInput("seed", [1], "INT64").set_data_from_numpy(seed),
]
with triton.InferenceServerClient("localhost:8001") as client:
    client.start_stream(lambda result, error: answers.put(error or result))
    client.async_stream_infer("markov_text", inputs, enable_empty_final_response=True)
    while not isinstance(answer := answers.get(), Exception):
        if answer.get_response().parameters["triton_final_response"].bool_param:
            sys.exit(print())
        print(answer.as_numpy("word")[0].decode(), end=" ", flush=True)
sys.exit(answer)
