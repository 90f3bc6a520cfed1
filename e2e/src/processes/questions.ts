import type { InferResponse, OutgoingRequest } from '@tutti/protocol'
import { fp32, slowInputs } from '../tensors.ts'

/** A request whose answer is known to the byte. */
export interface Question {
  readonly request: OutgoingRequest
  readonly output: string
  readonly expected: Uint8Array
}

/** Whole numbers, so that sums are exact; no two neighbours are equal, so that a shift shows. */
function numbers(count: number, seed: number): Float32Array<ArrayBuffer> {
  const all = new Float32Array(count)
  // A loop, since `from` takes as long as a request.
  for (let i = 0; i < count; i += 1) all[i] = ((i + seed) * 7919) % 65_536
  return all
}

/** `ens_chain`: two steps that add one each. */
export function chainQuestion(seed = 0): Question {
  return rowQuestion('ens_chain', seed, 2)
}

/** `ens_nested`: an ensemble within an ensemble, three steps that add one each. */
export function nestedQuestion(seed = 0): Question {
  return rowQuestion('ens_nested', seed, 3)
}

function rowQuestion(modelName: string, seed: number, added: number): Question {
  const row = numbers(16, seed)
  return {
    request: { modelName, inputs: [fp32('X', row, [1, 16])] },
    output: 'Y',
    expected: fp32(
      'Y',
      row.map((x) => x + added),
    ).data,
  }
}

/** `big_identity` with so many bytes, rounded up to whole rows. */
export function identityQuestion(bytes: number, seed = 0): Question {
  const columns = 256
  const rows = Math.ceil(bytes / (columns * 3 * 4))
  const x = fp32('x', numbers(rows * columns * 3, seed), [rows, columns, 3])
  return { request: { modelName: 'big_identity', inputs: [x] }, output: 'y', expected: x.data }
}

/** `ens_versioned` with so many bytes: two versions of one model, that add 1 and 3. */
export function versionedQuestion(bytes: number, seed = 0): Question {
  const x = numbers(Math.ceil(bytes / 4), seed)
  return {
    request: { modelName: 'ens_versioned', inputs: [fp32('x', x, [x.length])] },
    output: 'y',
    expected: fp32(
      'y',
      x.map((value) => value + 4),
    ).data,
  }
}

/** Rounds of `slow` for more than anybody waits: about 80 s on one core. */
export const ENDLESS = 400_000

/** `slow`, or `ens_slow`, which is `slow` twice: about 0.2 ms a round on one core that has nothing else to do. */
export function slowQuestion(rounds: number, modelName: 'slow' | 'ens_slow' = 'slow'): Question {
  const inputs = slowInputs(rounds)
  return { request: { modelName, inputs }, output: 'y', expected: fp32('x', [1]).data }
}

const MIX: readonly ((seed: number) => Question)[] = [
  chainQuestion,
  () => slowQuestion(100),
  (seed) => identityQuestion(2_000_000, seed),
  (seed) => versionedQuestion(300_000, seed),
  () => slowQuestion(50, 'ens_slow'),
]

/** One of a mix: small and large, plain and through ensembles, quick and slow. */
export function mixedQuestion(i: number): Question {
  return (MIX[i % MIX.length] ?? chainQuestion)(i)
}

/** @returns what is wrong with an answer, or undefined. */
export function answerProblem(question: Question, answer: InferResponse): string | undefined {
  return problemOf(question, answer.outputs.find(({ name }) => name === question.output)?.data)
}

/** @returns what is wrong with the bytes of the output, or undefined. */
export function problemOf(question: Question, got: Uint8Array | undefined): string | undefined {
  if (got !== undefined && Buffer.compare(got, question.expected) === 0) return undefined
  const size = got === undefined ? 'no' : got.byteLength
  return `${question.request.modelName}: ${size} bytes, not the ${question.expected.byteLength} right ones`
}
