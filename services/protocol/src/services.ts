import { fileURLToPath } from 'node:url'
import type { MethodDefinition } from '@grpc/grpc-js'
import { loadSync, type MessageTypeDefinition, type Options } from '@grpc/proto-loader'
import type { HealthDefinition } from './gen/grpc/health/v1/Health.ts'
import type { GRPCInferenceServiceDefinition } from './gen/inference/GRPCInferenceService.ts'

/** Folder of the .proto files, found from `dist` as from `src`. */
export const PROTO_DIRECTORY = fileURLToPath(new URL('../proto', import.meta.url))

/** Options of proto-loader by which messages become objects. `scripts/gen.mjs` gives the type generator the same options. */
export const PROTO_OPTIONS = {
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
  includeDirs: [PROTO_DIRECTORY],
} as const satisfies Options

const PROTO_FILES = ['grpc_service.proto', 'health.proto', 'status_details.proto']

/** A google.rpc.ErrorInfo. */
export interface ErrorInfo {
  readonly reason: string
  readonly domain: string
  readonly metadata: Readonly<Record<string, string>>
}

/** A google.rpc.Status, as proto-loader has it. */
interface Status {
  readonly code: number
  readonly message: string
  readonly details: readonly { readonly type_url: string; readonly value: Uint8Array }[]
}

/** A google.rpc.RetryInfo. */
interface RetryInfo {
  readonly retry_delay: { readonly seconds: number; readonly nanos: number }
}

/** A google.rpc.Help. */
interface Help {
  readonly links: readonly { readonly description: string; readonly url: string }[]
}

/** Messages that tell more of an error than its code and text. */
interface StatusMessages {
  readonly 'google.rpc.Status': MessageTypeDefinition<Status, Status>
  readonly 'google.rpc.ErrorInfo': MessageTypeDefinition<ErrorInfo, ErrorInfo>
  readonly 'google.rpc.Help': MessageTypeDefinition<Help, Help>
  readonly 'google.rpc.RetryInfo': MessageTypeDefinition<RetryInfo, RetryInfo>
}

/** The full name of the v2 protocol's service. */
export const INFERENCE_SERVICE = 'inference.GRPCInferenceService'

/** Services and messages of the files, as proto-loader has them: servers need no more of gRPC's library. */
interface ProtoFiles extends StatusMessages {
  readonly [INFERENCE_SERVICE]: GRPCInferenceServiceDefinition
  readonly 'grpc.health.v1.Health': HealthDefinition
}

function passBuffer(bytes: Buffer): Buffer {
  return bytes
}

/** Defines a method whose messages a codec of our own handles, on both sides. */
function raw<Request, Response>(
  method: MethodDefinition<Request, Response>,
): MethodDefinition<Buffer, Buffer> {
  return {
    path: method.path,
    requestStream: method.requestStream,
    responseStream: method.responseStream,
    requestSerialize: passBuffer,
    requestDeserialize: passBuffer,
    responseSerialize: passBuffer,
    responseDeserialize: passBuffer,
  }
}

/** Service as we run it: messages of the two inference methods are encoded bytes. */
export type RawInferenceService = Omit<
  GRPCInferenceServiceDefinition,
  'ModelInfer' | 'ModelStreamInfer'
> & {
  readonly ModelInfer: MethodDefinition<Buffer, Buffer>
  readonly ModelStreamInfer: MethodDefinition<Buffer, Buffer>
  readonly RepositoryModelLoad: GRPCInferenceServiceDefinition['RepositoryModelLoad']
}

export interface InferenceServices {
  /** `inference.GRPCInferenceService`; ModelInfer and ModelStreamInfer take and give encoded messages. */
  readonly inference: RawInferenceService
  /** Service `inference.GRPCInferenceService` with every message as an object. */
  readonly objects: GRPCInferenceServiceDefinition
  /** `grpc.health.v1.Health`. */
  readonly health: HealthDefinition
  readonly statusMessages: StatusMessages
}

function load(): InferenceServices {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types are generated from the files just read
  const files = loadSync(PROTO_FILES, PROTO_OPTIONS) as unknown as ProtoFiles
  const objects = files[INFERENCE_SERVICE]
  const inference = {
    ...objects,
    ModelInfer: raw(objects.ModelInfer),
    ModelStreamInfer: raw(objects.ModelStreamInfer),
  }
  return { inference, objects, health: files['grpc.health.v1.Health'], statusMessages: files }
}

let loaded: InferenceServices | undefined

/** Loads the services of the v2 protocol. The first call reads the .proto files; a server makes it before its first request. */
export function inferenceServices(): InferenceServices {
  loaded ??= load()
  return loaded
}
