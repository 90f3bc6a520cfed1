import { type ChannelCredentials, type ClientOptions, makeClientConstructor } from '@grpc/grpc-js'
import type { HealthClient } from '../gen/grpc/health/v1/Health.ts'
import type { GRPCInferenceServiceClient } from '../gen/inference/GRPCInferenceService.ts'
import { INFERENCE_SERVICE, inferenceServices } from '../services.ts'

/** Opens a client of the v2 protocol for which every message is an object. The caller closes it. */
export function openObjectClient(
  address: string,
  security: ChannelCredentials,
  options: ClientOptions = {},
): GRPCInferenceServiceClient {
  const ObjectClient = makeClientConstructor(inferenceServices().objects, INFERENCE_SERVICE)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the methods of that definition
  return new ObjectClient(address, security, options) as unknown as GRPCInferenceServiceClient
}

/** Opens a client of `grpc.health.v1.Health`. The caller closes it. */
export function openHealthClient(address: string, security: ChannelCredentials): HealthClient {
  const Client = makeClientConstructor(inferenceServices().health, 'grpc.health.v1.Health')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the methods of that definition
  return new Client(address, security) as unknown as HealthClient
}
