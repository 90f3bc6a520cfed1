// The texts of docs/errors.md on what to do about each reason of errors, by group. `npm run gen` fails for a reason of
// services/errors that is not here, and for a text here whose reason there is not. What a reason means stands in
// services/errors/src/reasons.ts.

export const ERROR_TEXTS = {
  'Configurations and graphs': {
    CONFIG_SYNTAX:
      'Mend `config.pbtxt` at the line and column that the text names. `tutti config MODEL` prints what was understood.',
    CONFIG_INVALID:
      'Change the field that the text names. [Compatibility](compatibility.md) tells of each field whether it is offered here.',
    CONFIG_MISSING:
      'Write a `config.pbtxt`. Without one only ONNX models are served, and models whose `model.py` has `auto_complete_config` ([quick start](quick-start.md#1-a-model)).',
    ENSEMBLE_INVALID:
      'Mend the graph: the text names the step and the tensor. `tutti validate -f FILE` tells all faults of manifests at once ([manifests](manifests.md#check-before-you-apply)).',
    ENSEMBLE_DEPENDENCY:
      'Mend or load the model that the text names first; the ensemble follows. The index (`/v2/repository/index`) has the reason of each model.',
    BACKEND_UNSUPPORTED:
      'Choose an engine that is here: ONNX Runtime, Python or TorchScript ([engines](engines.md)). The engines of an image are in its name ([images](../images/README.md)).',
    DEVICE_UNAVAILABLE:
      'Start the server with `--accelerator` for the devices that it may use, or change `instance_group`. `tutti doctor` lists the GPUs of the machine.',
  },
  'Files of models': {
    REPOSITORY_UNREADABLE:
      'Check that the folder is there and that the server may read it. The text names the path.',
    ARTIFACT_NOT_FOUND: 'Check the address: `storageUri`, or `--model-repository` of a bucket.',
    ARTIFACT_DENIED:
      'Give credentials that may read the address ([credentials](storage.md#credentials)).',
    ARTIFACT_UNAVAILABLE:
      'The server that has the model does not answer, or answers with an error of its own. The fetch is tried again; if it goes on, reach the address from the same machine.',
    ARTIFACT_UNTRUSTED:
      "Give the authority that signed the server's certificate ([credentials](storage.md#credentials)).",
    ARTIFACT_MISMATCH:
      'The files are not those that were meant. Store them again, or write the digest that they have: `tutti fetch --verify FOLDER --print-digest` ([storage](storage.md#what-a-fetch-guarantees)).',
    ARTIFACT_INVALID: 'Pack the model again. An archive holds files and folders below its own root.',
    ARTIFACT_TOO_LARGE:
      'Make the model smaller, or raise the bound that the text names ([storage](storage.md#what-a-fetch-guarantees)).',
    ARTIFACT_NOT_STORED:
      'Make room in the folder that the text names, or let the server write there.',
  },
  'Loading models': {
    MODEL_NOT_FOUND:
      'Check the name and the version. `/v2/repository/index` lists those that there are.',
    MODEL_AMBIGUOUS:
      'Name the repository too ([models of the same name](model-control.md#models-of-the-same-name)).',
    MODEL_NOT_READY:
      'Wait until the model is ready, and try again. If it does not get ready, the index says why.',
    MODEL_STARTING:
      'Try again with more time, or raise `timeouts.load` of the Model; the text says how far the start is ([scale to zero](scale-to-zero.md)). `minReplicas: 1` keeps a pod ready.',
    MODEL_POLL_FAILED: 'Mend the files or the configuration that the text names, and load again.',
    MODEL_LOAD_OVERTAKEN:
      'Another client unloaded the model meanwhile. Load it again if it is wanted.',
    MODEL_LOAD_FAILED:
      "The text has the engine's words. Usual causes: a file of another version of the format, an import that `model.py` lacks, too little memory. `tutti doctor` tells what the machine lacks.",
    MODEL_WARMUP_FAILED: 'Correct the sample in `model_warmup`, or the model that fails on it.',
    MODEL_CONTROL_REFUSED:
      'Start the server with `--model-control-mode=explicit`, and call it as the flags for control allow ([model control](model-control.md)).',
  },
  Requests: {
    INVALID_VERSION: 'A version is a whole number. Leave it out for the latest one.',
    INVALID_PARAMETER: 'Change or leave out the parameter that the text names.',
    INVALID_REQUEST:
      "Compare the request with the model's metadata (`/v2/models/MODEL`). The text says what came and what is expected.",
    INVALID_TENSOR_DATA: 'Send as many bytes as datatype and shape ask for. The text has both numbers.',
    INCOMPLETE_STRING:
      'Write the length of each element, four bytes with the least first, before its bytes.',
    SHAPE_MISMATCH: 'Send the shape that the text wants. A batch counts as the first dimension.',
    DATATYPE_MISMATCH: 'Send the datatype that the text wants.',
    UNSUPPORTED:
      'Do without the feature. [Compatibility](compatibility.md) says of each one whether it is here, and why not.',
    MALFORMED_MESSAGE: 'The client sends bytes that are no message of the protocol. Mend the client.',
    NOT_FOUND: 'Check the path or the name. [Protocol](protocol.md) lists the paths.',
    METHOD_NOT_ALLOWED: 'Use a method that the header `allow` of the answer names.',
    SEQUENCE_NOT_STARTED:
      'Begin the sequence again with `sequence_start`. It has ended, been idle for too long, or lost its replica ([sequences](sequences.md#when-a-sequence-ends)).',
  },
  'Who may call': {
    UNAUTHENTICATED:
      'Send a bearer token that the server knows in `authorization` ([access](access.md)).',
    ACCESS_DENIED: 'Use another identity, or allow this one the model or the call ([access](access.md)).',
    QUOTA_EXCEEDED:
      'Wait for as long as `Retry-After` or `google.rpc.RetryInfo` says, or raise the quota ([quotas](access.md#quotas)).',
    FOREIGN_PAGE:
      'Call from a client that is no browser, or from a page of the server itself ([security](security.md#outside-kubernetes)).',
  },
  'Bounds and time': {
    MESSAGE_TOO_LARGE:
      'Send less in one message, or raise `--grpc-max-message-size` or `--http-max-input-size`.',
    QUEUE_FULL:
      'Try again later, with less at the same time; or raise `max_queue_size` or `--max-queue-size`, or add instances or replicas. Runbook: [requests are rejected](runbooks/TuttiRequestsRejected.md).',
    QUEUE_TIMEOUT:
      'Raise the queue timeout of the model or of the request, or add instances or replicas. Runbook: [requests wait](runbooks/TuttiRequestsWait.md).',
    NESTING_TOO_DEEP: 'Break the cycle of calls that the text shows, or raise `--max-bls-depth`.',
    OVERLOADED:
      'Try again later, or raise the bound that the text names ([limits](operations.md#limits)).',
    DEADLINE_EXCEEDED:
      'Give the request more time. Traces tell which step took it ([traces](operations.md#traces)).',
    CANCELLED: 'Nothing: the client ended the call. If it did not mean to, look for a proxy between.',
  },
  'Routers, steps and pods': {
    STEP_UNAVAILABLE:
      'Try again. If it goes on, start a step that serves the model, or look why there is none: on Kubernetes `kubectl describe model NAME`. Runbook: [a model lacks replicas](runbooks/TuttiReplicasMissing.md).',
    STEP_TIMEOUT:
      'The text names the step. Look at its times in a trace or in the metrics; give it more `timeout`, or a [fallback](step-calls.md#fallback).',
    STEP_LOST:
      'Try again only what may execute twice; Tutti does not. The logs of the replica say why it went.',
    PAUSED:
      'Let it go on as the text says, then try again: `spec.paused` of a Model, or `kubectl rollout resume` of a Deployment.',
    POD_UNREACHABLE:
      'The operator tries again. If it goes on, look at the pod, and at the NetworkPolicies between ([conditions](conditions.md)).',
    REVISION_GONE: 'Try again: a new request takes the revision that is served now.',
    SERVER_NOT_READY:
      'Wait until `/v2/health/ready` answers 200. Runbook: [a server is not ready](runbooks/TuttiServerNotReady.md).',
    SERVER_STOPPING: 'Try again: another replica answers, or the server when it is back.',
  },
  Engines: {
    ENGINE_FAILED:
      "The text has the engine's or the model's own words. Runbook: [a model fails](runbooks/TuttiModelFails.md).",
    ENGINE_STOPPED:
      "Try again: the engine is started anew. If it stops again and again, the log has the end of the process's output; memory is the usual cause.",
    CONDITION_FAILED:
      'A condition (`when`) of an Ensemble has no value: it reads NaN, an element or a parameter that is not there, divides by zero, or compares values of different types. Change the condition (`"tier" in parameters && …`), or what the model makes.',
    ITEMS_INVALID:
      'The text names the step, the item or iteration, what came and what is wanted. More items than `maxItems`: raise it, or find fewer. Tensors of unequal numbers of items: the steps that make them do not agree. Outputs of unequal shape: gather them with `Concat`, or pad them.',
    OUTPUT_ABSENT:
      'All steps that make an output were skipped; the text names them. Mark the output `optional: true`, or name another tensor in `firstOf`.',
    RESPONSE_INVALID:
      'Correct the model: what it answers is not what its configuration declares.',
  },
  'Programs and bugs': {
    FLAG_INVALID: 'Correct the flag that the text names. `--help` lists all.',
    SETTING_INVALID: 'Correct the setting that the text names: a variable, a file, or an address.',
    INTERNAL:
      'If the text begins with `bug: `, it is a bug of Tutti: please report it with the log line, which has the stack.',
  },
}
