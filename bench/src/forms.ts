import { encodeInferRequest, inferenceServices } from '@tutti/protocol'
import type { InferenceClient } from '@tutti/protocol/client'
import { http1Load, toHttp1Request } from './http1-load.ts'
import { http2Load, type LoadResult, toGrpcFrame } from './http2-load.ts'

export type Request = Parameters<InferenceClient['infer']>[0]

/** How requests are put: by gRPC, or by REST with the tensors in JSON or behind it as bytes. */
export type Form = 'gRPC' | 'REST JSON' | 'REST binary'

/** Where a server listens on the loopback. */
export interface Ports {
  readonly grpcPort: number
  /** NaN of a server without REST. */
  readonly httpPort: number
}

/** Sends so many requests. gRPC takes one connection, REST a connection for each request in flight. */
export type Send = (
  server: Ports,
  o: { readonly inFlight: number; readonly requests: number },
) => Promise<LoadResult>

/** Makes the bytes of a request once, and what sends them over and over. */
export function sendBy(form: Form, request: Request): Send {
  if (form === 'gRPC') {
    const body = toGrpcFrame(encodeInferRequest(request))
    const { path } = inferenceServices().inference.ModelInfer
    return ({ grpcPort }, o) => http2Load({ port: grpcPort, path, body, ...o })
  }
  const { path, body, headers } = form === 'REST JSON' ? jsonOf(request) : binaryOf(request)
  const bytes = toHttp1Request(path, body, headers)
  return ({ httpPort }, { inFlight, requests }) =>
    http1Load({ port: httpPort, request: bytes, connections: inFlight, requests })
}

/** A POST by REST. */
interface RestRequest {
  readonly path: string
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** Only for FP32 and INT32, whose elements JSON has as they are. */
function jsonOf(request: Request): RestRequest {
  const inputs = request.inputs.map(({ data, ...input }) => ({
    ...input,
    data: [...elementsOf(input.datatype, data)],
  }))
  return { path: pathOf(request), body: jsonBytes({ inputs }), headers: {} }
}

function elementsOf(datatype: string, { buffer, byteOffset, byteLength }: Uint8Array) {
  if (datatype === 'FP32') return new Float32Array(buffer, byteOffset, byteLength / 4)
  if (datatype === 'INT32') return new Int32Array(buffer, byteOffset, byteLength / 4)
  throw new Error(`got ${datatype}, want FP32 or INT32`)
}

function binaryOf(request: Request): RestRequest {
  const head = jsonBytes({
    inputs: request.inputs.map(({ data, ...input }) => ({
      ...input,
      parameters: { binary_data_size: data.byteLength },
    })),
    parameters: { binary_data_output: true },
  })
  const headers = { 'inference-header-content-length': String(head.byteLength) }
  const body = Buffer.concat([head, ...request.inputs.map(({ data }) => data)])
  return { path: pathOf(request), body, headers }
}

function pathOf({ modelName }: Request): string {
  return `/v2/models/${modelName}/infer`
}

function jsonBytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/** Sends one request by REST. @returns the outputs in the order of their names, in JSON or as bytes. */
export async function askByRest(
  form: 'REST JSON' | 'REST binary',
  { httpPort }: Ports,
  request: Request,
): Promise<Buffer> {
  const { path, body, headers } = form === 'REST JSON' ? jsonOf(request) : binaryOf(request)
  const url = `http://127.0.0.1:${httpPort}${path}`
  const answer = await fetch(url, { method: 'POST', body, headers })
  const bytes = Buffer.from(await answer.arrayBuffer())
  if (!answer.ok) throw new Error(`got ${answer.status}: ${bytes.toString()}`)
  const headBytes = Number(answer.headers.get('inference-header-content-length') ?? bytes.length)
  const { outputs }: { outputs: RestOutput[] } = JSON.parse(bytes.toString('utf8', 0, headBytes))
  let at = headBytes
  const read = outputs.map(({ name, data, parameters }) => {
    const from = at
    at += parameters?.binary_data_size ?? 0
    return { name, bytes: data ? jsonBytes(data) : bytes.subarray(from, at) }
  })
  const sorted = read.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  return Buffer.concat(sorted.map((output) => output.bytes))
}

interface RestOutput {
  readonly name: string
  readonly data?: readonly number[]
  readonly parameters?: { readonly binary_data_size?: number }
}
