import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  credentials,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js'
import { ServeError } from '@tutti/errors'
import type { GRPCInferenceServiceClient } from '../gen/inference/GRPCInferenceService.ts'
import type { ModelConfigResponse__Output } from '../gen/inference/ModelConfigResponse.ts'
import type { ModelMetadataResponse__Output } from '../gen/inference/ModelMetadataResponse.ts'
import type { RepositoryIndexResponse__Output } from '../gen/inference/RepositoryIndexResponse.ts'
import { decodeInferResponse, encodeInferRequest } from '../infer/client-codec.ts'
import type { InferResponse, OutgoingRequest } from '../infer/infer-message.ts'
import { type ReceivedMetadata, readMetadata } from '../model-metadata.ts'
import { inferenceServices } from '../services.ts'
import { fromGrpcStatus } from '../status/grpc-status.ts'
import { InferStream } from './infer-stream.ts'
import { openObjectClient } from './object-clients.ts'

const MAX_MESSAGE_BYTES = 2 ** 31 - 1
const DEFAULT_WINDOW_BYTES = 1024 * 1024

export interface InferenceClientOptions {
  /** `host:port`. */
  readonly address: string
  /**
   * Texts in PEM. `ca` is the authority of the server, by default those of Node. `cert` and `key` are for a server that asks for
   * a client's certificate. Absent: no TLS.
   */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** Most bytes of one message, sent or received; default 2^31 - 1, as in Triton. */
  readonly maxMessageBytes?: number
  /**
   * HTTP/2 flow-control window in bytes; default 1 MiB. gRPC's own 64 KiB cost a round trip for every 64 KiB. If the window
   * exceeds the sockets' buffers, two Node processes that both send much can wait for each other for ever.
   */
  readonly windowBytes?: number
}

export interface InferCallOptions {
  /** Time for the call in milliseconds; sent as `grpc-timeout`. */
  readonly timeoutMs?: number
  /** Cancels the call. */
  readonly signal?: AbortSignal
  /** Request headers, for example `traceparent`. */
  readonly headers?: Readonly<Record<string, string>>
}

function toMetadata(headers: Readonly<Record<string, string>> = {}): Metadata {
  const metadata = new Metadata()
  for (const [key, value] of Object.entries(headers)) metadata.set(key, value)
  return metadata
}

function toCredentials({ tls }: InferenceClientOptions): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure()
  const [ca, key, cert] = [tls.ca, tls.key, tls.cert].map((pem) =>
    pem === undefined ? null : Buffer.from(pem),
  )
  return credentials.createSsl(ca, key, cert)
}

function toCallOptions({ timeoutMs }: InferCallOptions): CallOptions {
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs }
}

type Settle<T> = (error: ServiceError | null, answer?: T) => void

function callObject<T>(call: (settle: Settle<T>) => unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, answer) => {
      if (error !== null) reject(fromGrpcStatus(error))
      else if (answer !== undefined) resolve(answer)
    })
  })
}

/** A client of a v2 inference server over one gRPC connection, for our own programs. All errors are ServeErrors. */
export class InferenceClient {
  readonly #channel: Client
  /** Client for the other methods of the service, with messages as objects. */
  readonly objects: GRPCInferenceServiceClient

  constructor(o: InferenceClientOptions) {
    const maxMessageBytes = o.maxMessageBytes ?? MAX_MESSAGE_BYTES
    const options = {
      'grpc.max_receive_message_length': maxMessageBytes,
      'grpc.max_send_message_length': maxMessageBytes,
      'grpc-node.flow_control_window': o.windowBytes ?? DEFAULT_WINDOW_BYTES,
      // Clients of one process would otherwise share a connection, and one would close it under another.
      'grpc.use_local_subchannel_pool': 1,
    }
    const security = toCredentials(o)
    this.#channel = new Client(o.address, security, options)
    this.objects = openObjectClient(o.address, security, {
      ...options,
      channelOverride: this.#channel.getChannel(),
    })
  }

  /** Calls ModelInfer. @throws ServeError as the server made it, see `fromGrpcStatus`. */
  async infer(request: OutgoingRequest, o: InferCallOptions = {}): Promise<InferResponse> {
    return decodeInferResponse(await this.inferEncoded(encodeInferRequest(request), o))
  }

  /**
   * Calls ModelInfer with encoded messages: `encodeInferRequest` makes the request, `decodeInferResponse` reads the result.
   *
   * @throws ServeError as `infer` does.
   */
  inferEncoded(request: Buffer, o: InferCallOptions = {}): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const { signal } = o
      if (signal?.aborted === true) {
        reject(ServeError.from(signal.reason))
        return
      }
      const { ModelInfer } = inferenceServices().inference
      const settle = (error: ServiceError | null, answer?: Buffer) => {
        signal?.removeEventListener('abort', cancel)
        if (error !== null) reject(fromGrpcStatus(error))
        else resolve(answer ?? Buffer.alloc(0))
      }
      const call = this.#channel.makeUnaryRequest(
        ModelInfer.path,
        ModelInfer.requestSerialize,
        ModelInfer.responseDeserialize,
        request,
        toMetadata(o.headers),
        toCallOptions(o),
        settle,
      )
      const cancel = () => call.cancel()
      signal?.addEventListener('abort', cancel, { once: true })
    })
  }

  /** Reads a model's metadata from the server: ModelMetadata, and ModelConfig where the server has it. */
  async metadata(
    name: string,
    version: string,
    o: InferCallOptions = {},
  ): Promise<ReceivedMetadata> {
    const headers = toMetadata(o.headers)
    // One deadline for both calls.
    const options = toCallOptions(o)
    const answer = await callObject<ModelMetadataResponse__Output>((settle) =>
      this.objects.ModelMetadata({ name, version }, headers, options, settle),
    )
    const told = await callObject<ModelConfigResponse__Output>((settle) =>
      this.objects.ModelConfig({ name, version }, headers, options, settle),
    ).catch((error: unknown) => {
      const { code } = ServeError.from(error)
      // Servers of the protocol need not have it.
      if (code === 'UNIMPLEMENTED' || code === 'NOT_FOUND') return undefined
      throw error
    })
    const isDecoupled = told?.config?.model_transaction_policy?.decoupled === true
    return { ...readMetadata(answer), isDecoupled }
  }

  /** Calls RepositoryIndex. @returns the names of the ready models; a name comes once for each version. */
  async readyModels(o: InferCallOptions = {}): Promise<readonly string[]> {
    const headers = toMetadata(o.headers)
    const { models } = await callObject<RepositoryIndexResponse__Output>((settle) =>
      this.objects.RepositoryIndex({ ready: true }, headers, toCallOptions(o), settle),
    )
    return models.map(({ name }) => name)
  }

  /** Opens a ModelStreamInfer. */
  openStream(o: InferCallOptions = {}): InferStream {
    const { ModelStreamInfer } = inferenceServices().inference
    const call = this.#channel.makeBidiStreamRequest(
      ModelStreamInfer.path,
      ModelStreamInfer.requestSerialize,
      ModelStreamInfer.responseDeserialize,
      toMetadata(o.headers),
      toCallOptions(o),
    )
    return new InferStream(call, o.signal)
  }

  close(): void {
    this.#channel.close()
  }
}
