import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OutgoingRequest } from '@tutti/protocol'
import { InferenceClient } from '@tutti/protocol/client'
import { ask, describe, errorFields, LONG_MS, type Outcome } from '../processes/asking.ts'
import type { Question } from '../processes/questions.ts'
import { SAMPLES } from '../seed-systems.ts'
import { ROOT, type Target } from '../serving.ts'
import type { Tensor } from '../tensors.ts'
import { PYTHON_FLAGS } from '../triton-client.ts'
import { askRest } from './rest-clients.ts'

/** Where Python models are that are called here: decoupled ones, and those that call others. */
export const PYTHON_FIXTURES = `${ROOT}model_repository/.variants/fixtures/python`
export const PYTHON_MODELS = [
  'py_add_sub',
  'py_repeat',
  'py_negate',
  'py_sum',
  'py_call',
  'ens_py_add_sub',
  'ens_repeat',
]
export { PYTHON_FLAGS }

/** Decoupled models, and what they make of an element. */
const DECOUPLED = { py_repeat: 1, ens_repeat: -1 } as const

/** The system that reads words from pictures: six models, two of them networks. */
function wordsQuestion(): Question {
  const file = readFileSync(join(SAMPLES, 'words.jpg'))
  const words = readFileSync(join(SAMPLES, 'words.txt'), 'utf8').trim().split(/\s+/)
  const inputs: readonly Tensor[] = [
    { name: 'input_image', datatype: 'UINT8', shape: [1, file.byteLength], data: file },
  ]
  const expected = Buffer.concat(words.map(toBytes))
  return { request: { modelName: 'ensemble_model', inputs }, output: 'recognized_text', expected }
}

function addSubQuestion(modelName: 'ens_py_add_sub' | 'py_call', seed: number): Question {
  const a = Int32Array.from({ length: 16 }, (_, i) => seed + i)
  const b = Int32Array.from({ length: 16 }, (_, i) => 3 * seed - i)
  const inputs = [int32('INPUT0', a, [1, 16]), int32('INPUT1', b, [1, 16])]
  const isCall = modelName === 'py_call'
  const model = toBytes('py_add_sub')
  if (isCall) inputs.push({ name: 'MODEL', datatype: 'BYTES', shape: [1], data: model })
  const sums = a.map((x, i) => (isCall ? x + (b[i] ?? 0) : 2 * x))
  return { request: { modelName, inputs }, output: 'OUTPUT0', expected: int32('', sums, []).data }
}

/** `py_sum` calls a decoupled model, takes some of its responses and leaves the rest. */
function sumQuestion(model: keyof typeof DECOUPLED, seed: number): Question {
  const values = Int32Array.from({ length: 20 }, (_, i) => seed + i)
  const limit = 1 + (seed % 20)
  const sum = values.subarray(0, limit).reduce((total, x) => total + x * DECOUPLED[model], 0)
  const inputs: readonly Tensor[] = [
    int32('IN', values, [values.length]),
    { name: 'MODEL', datatype: 'BYTES', shape: [1], data: toBytes(model) },
    int32('LIMIT', [limit], [1]),
  ]
  const expected = int32('', [sum], []).data
  return { request: { modelName: 'py_sum', inputs }, output: 'SUM', expected }
}

/**
 * Asks the models that are not of ONNX alone, each over gRPC and REST, and compares every byte.
 *
 * @returns what was wrong, in words.
 */
export async function askAllKinds(target: Target, seed: number): Promise<readonly string[]> {
  const questions = [
    addSubQuestion('ens_py_add_sub', seed),
    addSubQuestion('py_call', seed),
    sumQuestion('py_repeat', seed),
    sumQuestion('ens_repeat', seed),
    wordsQuestion(),
  ]
  const client = new InferenceClient({ address: `127.0.0.1:${target.grpcPort}` })
  const outcomes: Outcome[] = []
  for (const question of questions) {
    outcomes.push(...(await Promise.all([ask(client, question), askRest(target, question)])))
  }
  const streams = await Promise.all([
    askDecoupled(client, 'py_repeat', seed),
    askDecoupled(client, 'ens_repeat', seed),
  ])
  client.close()
  return [...outcomes, ...streams].filter(({ kind }) => kind !== 'right').map(describe)
}

/** Requests of one call of `askAllKinds`. */
export const KINDS_ASKED = 12

/** Every response of two requests on one stream, in order for each. */
async function askDecoupled(
  client: InferenceClient,
  modelName: keyof typeof DECOUPLED,
  seed: number,
): Promise<Outcome> {
  const values = Int32Array.from({ length: 50 }, (_, i) => (seed % 1000) + i)
  const wanted = String([...values].map((x) => x * DECOUPLED[modelName]))
  const stream = client.openStream({ timeoutMs: LONG_MS })
  const got = new Map<string, number[]>([
    ['a', []],
    ['b', []],
  ])
  try {
    for (const id of got.keys()) {
      const request: OutgoingRequest = { modelName, id, inputs: [int32('IN', values, [50])] }
      stream.send(request).catch(() => {})
    }
    stream.end()
    for await (const { errorMessage, response } of stream.responses()) {
      if (errorMessage !== '') return { kind: 'wrong', what: `${modelName}: ${errorMessage}` }
      const data = response?.outputs[0]?.data
      if (data !== undefined) got.get(response?.id ?? '')?.push(Buffer.from(data).readInt32LE())
    }
  } catch (error) {
    return { kind: 'wrong', what: `${modelName}: ${String(errorFields(error).message)}` }
  }
  const isRight = [...got.values()].every((numbers) => String(numbers) === wanted)
  return isRight ? { kind: 'right' } : { kind: 'wrong', what: `${modelName}: other responses` }
}

function int32(name: string, values: ArrayLike<number>, shape: readonly number[]): Tensor {
  const data = new Uint8Array(Int32Array.from(values).buffer)
  return { name, datatype: 'INT32', shape, data }
}

/** An element of a tensor of strings. */
function toBytes(text: string): Buffer {
  const bytes = Buffer.from(text)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(bytes.byteLength)
  return Buffer.concat([length, bytes])
}
