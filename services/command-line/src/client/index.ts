export { callHttp, type HttpConnection } from './call-http.ts'
export { openGrpcClient } from './grpc-client.ts'
export {
  CONNECTION_FLAGS,
  INFER_FLAGS,
  type InferFlags,
  LOOK_UP_SECS,
  REQUEST_FLAGS,
  URL_FLAG,
} from './infer-flags.ts'
export { type ModelClient, parseServerUrl } from './model-client.ts'
export { readNamed, splitNamed } from './named-flags.ts'
export { openClient, readAccess } from './open-client.ts'
export { parseShape } from './parse-shape.ts'
export { decodePicture, encodePicture } from './picture.ts'
export { collectBounded, readBounded } from './read-bounded.ts'
export { readInput } from './read-input.ts'
export { MOST_TENSOR_BYTES, readInputs, readModelName, readVersion } from './read-inputs.ts'
export { reasonOfStatus } from './reason-of-status.ts'
export { openRestClient } from './rest-client.ts'
