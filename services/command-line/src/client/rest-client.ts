import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isReason, ServeError } from '@tutti/errors'
import {
  HEADER_LENGTH_HEADER,
  type InferResponse,
  type OutgoingRequest,
  readMetadata,
} from '@tutti/protocol'
import { isDatatype, type NamedTensor, type Parameters } from '@tutti/tensor'
import { z } from 'zod'
import { callHttp, type HttpAnswer, type HttpCall } from './call-http.ts'
import type { ModelClient, ModelClientOptions } from './model-client.ts'
import { reasonOfStatus } from './reason-of-status.ts'

interface RestOptions extends ModelClientOptions {
  readonly agent: HttpAgent
}

const TensorMetadata = z.object({
  name: z.string(),
  datatype: z.string(),
  shape: z.array(z.number()),
})
const Metadata = z.object({
  name: z.string(),
  inputs: z.array(TensorMetadata),
  outputs: z.array(TensorMetadata),
})
const Index = z.array(z.object({ name: z.string() }))
const Response = z.object({
  model_name: z.string(),
  model_version: z.string().default(''),
  id: z.string().default(''),
  parameters: z.record(z.string(), z.unknown()).default({}),
  outputs: z.array(
    TensorMetadata.extend({ parameters: z.object({ binary_data_size: z.int().min(0) }) }),
  ),
})

function pathOf(model: string, version = ''): string {
  const path = `/v2/models/${encodeURIComponent(model)}`
  return version === '' ? path : `${path}/versions/${encodeURIComponent(version)}`
}

function inferPathOf({ modelName, modelVersion }: OutgoingRequest): string {
  return `${pathOf(modelName, modelVersion)}/infer`
}

/** Opens a client over REST, with tensors as binary data. The caller closes the client. */
export function openRestClient(given: ModelClientOptions): ModelClient {
  const Agent = given.url.protocol === 'https:' ? HttpsAgent : HttpAgent
  const o = { ...given, agent: new Agent({ keepAlive: true }) }
  const lookUp = { ...o, timeoutMs: o.lookUpMs }
  return {
    async metadata(model, version) {
      const { body } = await call(lookUp, { method: 'GET', path: pathOf(model, version) })
      // A stream is asked for over gRPC; a server refuses a decoupled model here and says so.
      return { ...readMetadata(parse(Metadata, body)), isDecoupled: false }
    },
    async *infer(request) {
      const { parts, headers } = encodeRequest(request)
      const path = inferPathOf(request)
      yield decodeResponse(await call(o, { method: 'POST', path, parts, headers }))
    },
    prepare(request) {
      const { parts, headers } = encodeRequest(request)
      const sent = { path: inferPathOf(request), parts: [Buffer.concat(parts)], headers }
      return async (signal) => void (await call(o, { method: 'POST', ...sent, signal }))
    },
    async models() {
      const parts = [Buffer.from('{"ready":true}')]
      const { body } = await call(lookUp, { method: 'POST', path: '/v2/repository/index', parts })
      return parse(Index, body).map(({ name }) => name)
    },
    close: () => o.agent.destroy(),
  }
}

function encodeRequest({ inputs, outputs = [] }: OutgoingRequest) {
  const json = Buffer.from(
    JSON.stringify({
      parameters: { binary_data_output: true },
      inputs: inputs.map(({ name, datatype, shape, data }) => ({
        name,
        datatype,
        shape,
        parameters: { binary_data_size: data.byteLength },
      })),
      ...(outputs.length > 0 && {
        outputs: outputs.map(({ name }) => ({ name, parameters: { binary_data: true } })),
      }),
    }),
  )
  return {
    parts: [json, ...inputs.map(({ data }) => data)],
    headers: { [HEADER_LENGTH_HEADER]: String(json.byteLength) },
  }
}

function decodeResponse({ body, headers }: HttpAnswer): InferResponse {
  const jsonBytes = Number(headers[HEADER_LENGTH_HEADER.toLowerCase()] ?? body.byteLength)
  const response = parse(Response, body.subarray(0, jsonBytes))
  let at = jsonBytes
  const outputs = response.outputs.map(({ name, datatype, shape, parameters }): NamedTensor => {
    const data = body.subarray(at, (at += parameters.binary_data_size))
    if (!isDatatype(datatype) || data.byteLength !== parameters.binary_data_size) {
      throw malformed(`output '${name}' of ${datatype} has ${data.byteLength} bytes`)
    }
    return { name, datatype, shape, data }
  })
  const { model_name: modelName, model_version: modelVersion, id } = response
  return { modelName, modelVersion, id, parameters: textsOf(response.parameters), outputs }
}

/** Returns the parameters that are texts: numbers of JSON have lost their kind. */
function textsOf(parameters: Readonly<Record<string, unknown>>): Parameters {
  return new Map(
    Object.entries(parameters).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, { kind: 'string', value }] as const] : [],
    ),
  )
}

function parse<T>(schema: z.ZodType<T>, body: Buffer): T {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    throw malformed(`no JSON: ${JSON.stringify(body.toString('utf8', 0, 80))}`)
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw malformed(z.prettifyError(parsed.error))
}

function malformed(what: string): ServeError {
  return new ServeError(
    'MALFORMED_MESSAGE',
    `the server's answer is not of the v2 protocol: ${what}`,
  )
}

async function call(o: RestOptions, { path, ...sent }: Omit<HttpCall, 'url'> & { path: string }) {
  const url = new URL(o.url.pathname.replace(/\/$/, '') + path, o.url)
  const answer = await callHttp(o, { ...sent, url })
  if (answer.status !== 200) throw refusal(answer)
  return answer
}

function refusal({ status, body, headers }: HttpAnswer): ServeError {
  const told = String(headers['tutti-error-reason'])
  const reason = isReason(told) ? told : (reasonOfStatus(status) ?? 'INVALID_REQUEST')
  const text = body.toString('utf8')
  try {
    const { error } = z.object({ error: z.string() }).parse(JSON.parse(text))
    return new ServeError(reason, error)
  } catch {
    // A proxy's page, say.
    return new ServeError(reason, `HTTP ${status}: ${text.slice(0, 200)}`)
  }
}
