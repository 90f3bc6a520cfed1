import { createHash } from 'node:crypto'
import { LoopTurns } from '@tutti/chassis'
import type { CancelSignal } from '@tutti/errors'
import type { InferRequest, RequestContext } from '@tutti/tensor'

/** Bytes of tensors that are digested in one turn of the loop, which takes a millisecond or two. */
const TURN_BYTES = 2 ** 20

/** Shared by all requests: many may come whole in one turn. */
const TURNS = new LoopTurns()

/** The parts of a key. */
interface KeyedRequest {
  /** Names the loaded model or ensemble, as `CachedCall`'s. */
  readonly identity: string
  readonly request: InferRequest
  /** Names of all outputs, which a request that names none asks for. */
  readonly outputs: readonly string[]
}

/** Checks whether a request's inputs are so large that `cacheKeyByTurns` must digest them, in several turns of the loop. */
export function isKeyedByTurns({ inputs }: Pick<InferRequest, 'inputs'>): boolean {
  return inputs.reduce((sum, { data }) => sum + data.byteLength, 0) > TURN_BYTES
}

/** Makes the key of a large request, as `cacheKey`. @returns undefined once the signal has aborted. */
export async function cacheKeyByTurns(
  keyed: KeyedRequest,
  signal: CancelSignal,
): Promise<string | undefined> {
  const { hash, sorted } = beginKey(keyed)
  for (const { data } of sorted) {
    for (let at = 0; at < data.byteLength; at += TURN_BYTES) {
      await TURNS.next()
      if (signal.aborted) return undefined
      hash.update(data.subarray(at, at + TURN_BYTES))
    }
  }
  return hash.digest('hex')
}

/**
 * Makes the key of a request. Two requests have the same key only if model, inputs, requested outputs and parameters are the
 * same. Id, priority and queue timeout are no part of the key.
 *
 * @returns 64 hexadecimal digits.
 */
export function cacheKey(keyed: KeyedRequest): string {
  const { hash, sorted } = beginKey(keyed)
  for (const { data } of sorted) hash.update(data)
  return hash.digest('hex')
}

/** Begins a key: the digest of everything but the tensors' bytes, and the tensors in the order in which their bytes follow. */
function beginKey({ identity, request, outputs }: KeyedRequest) {
  const { context, inputs, requestedOutputs: asked } = request
  const sorted = inputs.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const head = JSON.stringify([
    identity,
    (asked.length > 0 ? asked : outputs).toSorted(),
    contextParts(context),
    sorted.map(({ name, datatype, shape, data }) => [name, datatype, shape, data.byteLength]),
  ])
  // The head's length comes first, and it has the lengths of all that follows: nothing runs into the next.
  return { hash: createHash('sha256').update(`${Buffer.byteLength(head)}:${head}`), sorted }
}

/** Gathers what a model may answer by, beside its inputs. */
function contextParts({ correlationId, sequenceStart, sequenceEnd, parameters }: RequestContext) {
  return [
    [typeof correlationId, String(correlationId)],
    sequenceStart,
    sequenceEnd,
    [...parameters]
      .map(([name, { kind, value }]) => [name, kind, String(value)])
      .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1)),
  ]
}
