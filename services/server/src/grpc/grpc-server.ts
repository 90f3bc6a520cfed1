import { encodeInferResponseFrame, inferenceServices } from '@tutti/protocol'
import type { RunningServer } from '../listen.ts'
import type { ServerIdentity } from '../server-identity.ts'
import { healthHandlers } from './health-handlers.ts'
import { inferOnce } from './infer-call.ts'
import { InferStreamCall } from './infer-stream.ts'
import { type Method, toMethods } from './method.ts'
import { modelHandlers, serverHandlers } from './model-handlers.ts'
import { repositoryHandlers } from './repository-handlers.ts'
import {
  GRPC_SERVER_DEFAULTS,
  type GrpcServerBounds,
  type RpcServerOptions,
  startRpcServer,
} from './rpc-server.ts'
import type { ServerCall } from './server-call.ts'
import { unsupportedHandlers } from './unsupported-handlers.ts'

export interface GrpcServerOptions
  extends Partial<GrpcServerBounds>,
    Omit<RpcServerOptions, keyof GrpcServerBounds | 'methods'> {
  readonly identity: ServerIdentity
}

function servedMethods(o: GrpcServerOptions, maxBytes: number): readonly Method[] {
  const { inference, health } = inferenceServices()
  const { ModelInfer, ModelStreamInfer, RepositoryModelLoad } = inference
  const handlers = {
    ModelInfer: { answer: inferOnce, encode: encodeInferResponseFrame },
    ModelStreamInfer: (call: ServerCall) =>
      new InferStreamCall({ call, maxBytes, clock: o.clock }).start(),
    ...serverHandlers(o.identity),
    ...modelHandlers(),
    ...repositoryHandlers(),
    ...unsupportedHandlers(),
  }
  const admitted = new Set([ModelInfer.path, ModelStreamInfer.path, RepositoryModelLoad.path])
  return [...toMethods(inference, handlers, admitted), ...toMethods(health, healthHandlers())]
}

/**
 * Starts the gRPC server: the v2 service and the health service over one backend.
 *
 * @throws ServeError SETTING_INVALID for bounds out of range or an address that cannot be listened on.
 */
export function startGrpcServer(o: GrpcServerOptions): Promise<RunningServer> {
  const bounds = { ...GRPC_SERVER_DEFAULTS, ...o }
  const methods = servedMethods(o, bounds.maxMessageBytes)
  return startRpcServer({ ...bounds, methods })
}
