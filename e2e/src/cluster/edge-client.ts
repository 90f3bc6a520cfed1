import { Agent } from 'node:https'
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js'
import { decodeInferResponse, encodeInferRequest, inferenceServices } from '@tutti/protocol'
import { InferStream } from '@tutti/protocol/client'
import type { Test } from 'tap'
import { restCall } from '../rest-call.ts'
import { inferPath, JSON_LENGTH, restBody, restOutputs } from '../rest-infer.ts'
import type { Tensor } from '../tensors.ts'
import { INGRESS, NODE_ADDRESS } from './kubectl.ts'

/** Question that clients ask, and where they ask it. */
export interface Question {
  /** The authority of the certificate, PEM. */
  readonly ca: Buffer
  readonly host: string
  readonly model: string
  readonly inputs: readonly Tensor[]
  /** Whose bytes are compared. */
  readonly outputs: readonly string[]
}

/** The bytes of the outputs, one behind the other; or what came instead, `PROTOCOL CODE: details`. */
export type Outcome = { readonly bytes: Uint8Array } | { readonly problem: string }
export type Asker = () => Promise<Outcome>

/** Far beyond what a request takes: who gets no answer until then waits for ever. */
const DEADLINE_MS = 90_000

/** A client of gRPC outside of the cluster, on a connection of its own with TLS that is closed with the test. */
export function askGrpc(t: Test, question: Question): Asker {
  const { model: modelName, inputs, outputs } = question
  const client = openGrpc(t, question)
  const message = Buffer.from(encodeInferRequest({ modelName, inputs }))
  const { path, requestSerialize, responseDeserialize } = inferenceServices().inference.ModelInfer
  return () =>
    new Promise((resolve) => {
      const settle = (error: ServiceError | null, answer?: Buffer): void => {
        if (answer === undefined) resolve(toProblem(error))
        else resolve({ bytes: bytesOf(decodeInferResponse(answer).outputs, outputs) })
      }
      const options = { deadline: Date.now() + DEADLINE_MS }
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, message, options, settle)
    })
}

/** Opens a connection that is closed with the test. */
function openGrpc(t: Test, { host, ca }: Question): Client {
  const client = new Client(`${NODE_ADDRESS}:${INGRESS.https}`, credentials.createSsl(ca), {
    'grpc.default_authority': host,
    'grpc.ssl_target_name_override': host,
    'grpc.use_local_subchannel_pool': 1,
  })
  t.teardown(() => client.close())
  return client
}

/** Opens a stream, through which one thing is asked after the other, outside of the cluster, with TLS, on a connection of its own that is closed with the test. */
export function converse(t: Test, question: Question) {
  const { model: modelName, inputs, outputs } = question
  const client = openGrpc(t, question)
  const { path, requestSerialize, responseDeserialize } =
    inferenceServices().inference.ModelStreamInfer
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  const stream = new InferStream(call)
  const responses = stream.responses()
  return {
    /** @throws ServeError if the stream has ended, Error if an answer is an error. */
    ask: async (): Promise<Uint8Array> => {
      await stream.send({ modelName, inputs })
      const { value } = await responses.next()
      if (value?.response === undefined)
        throw new Error(`no answer: ${value?.errorMessage ?? 'the end'}`)
      return bytesOf(value.response.outputs, outputs)
    },
    /** The server ends it in turn. */
    end: async (): Promise<void> => {
      stream.end()
      await responses.next()
    },
  }
}

/** A client of REST outside of the cluster, with TLS. */
export function askRest(t: Test, { ca, host, model, inputs, outputs }: Question): Asker {
  const agent = new Agent({ keepAlive: true, ca, servername: host })
  t.teardown(() => agent.destroy())
  const { body, jsonBytes } = restBody(inputs)
  const headers = { host, [JSON_LENGTH]: String(jsonBytes) }
  const place = { address: NODE_ADDRESS, ca, agent, body, headers }
  return async () => {
    try {
      const signal = AbortSignal.timeout(DEADLINE_MS)
      const answer = await restCall(INGRESS.https, 'POST', inferPath(model), { ...place, signal })
      if (answer.status !== 200)
        return { problem: `REST ${answer.status}: ${answer.body.toString()}` }
      const found = [...restOutputs(answer)].map(([name, data]) => ({ name, data }))
      return { bytes: bytesOf(found, outputs) }
    } catch (error) {
      return { problem: `REST ${error instanceof Error ? error.message : String(error)}` }
    }
  }
}

function toProblem(error: ServiceError | null): Outcome {
  const { code = status.UNKNOWN, details = 'no answer' } = error ?? {}
  return { problem: `gRPC ${status[code]}: ${details}` }
}

/** One that is absent has no bytes. */
function bytesOf(
  found: readonly { readonly name: string; readonly data: Uint8Array }[],
  outputs: readonly string[],
): Uint8Array {
  return Buffer.concat(
    outputs.map((output) => found.find(({ name }) => name === output)?.data ?? Buffer.alloc(0)),
  )
}
