import type { Clock } from '@tutti/chassis'
import {
  parseDescriptionJson,
  parseServedByRouter,
  parseStepLoad,
  type ServedByRouter,
  type StepDescription,
  type StepLoad,
} from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import { KeyedLimiter } from '../runtime/keyed-limiter.ts'
import { openLimit } from '../runtime/open-limit.ts'
import { failureAt, getJson, type JsonPlace } from './get-json.ts'

/** Where a pod of ours is asked. */
export interface PodAddress {
  readonly namespace: string
  readonly name: string
  /** IPv4 or IPv6. */
  readonly ip: string
}

export interface AskOptions {
  readonly signal: AbortSignal
}

/**
 * Asks routers and steps what they serve and how loaded they are. Every method throws a ServeError that names the pod:
 * POD_UNREACHABLE, DEADLINE_EXCEEDED, OVERLOADED for a question that was not put, MESSAGE_TOO_LARGE, MALFORMED_MESSAGE; or the
 * signal's reason if it aborts.
 *
 * The caller has an answer or an error within `timeoutMs`: the time in which a question waits for others of its namespace counts.
 */
export interface PodClient {
  servedByRouter(pod: PodAddress, o: AskOptions): Promise<ServedByRouter>
  servedByStep(pod: PodAddress, o: AskOptions): Promise<StepDescription>
  loadOfStep(pod: PodAddress, o: AskOptions): Promise<StepLoad>
}

export interface PodClientOptions {
  readonly clock: Clock
  /** Of the metrics listener; default METRICS_PORT. */
  readonly port?: number
  /** From the question to its answer; default 5000: a pod that takes longer is as good as away. */
  readonly timeoutMs?: number
  /** Of one answer; default MAX_BYTES. */
  readonly maxBytes?: number
  /** Steps of a namespace that are asked at the same time, and as many routers; default 8. */
  readonly maxConnections?: number
}

/** Of an answer: a router of some ten thousand models; a step of more than a ControllerRevision can hold. */
const MAX_BYTES = { router: 8 * 2 ** 20, step: 2 * 2 ** 20 } as const

/** Where all our processes answer the operator. */
const METRICS_PORT = 8002

export function createPodClient(o: PodClientOptions): PodClient {
  const { clock, port = METRICS_PORT, timeoutMs = 5000 } = o
  // What runs in pods is its namespace's, and may be silent on purpose; what runs in steps, without anybody having meant it.
  const limiter = new KeyedLimiter({ perKey: o.maxConnections ?? 8 })
  const ask = async <T>(
    pod: PodAddress,
    { of, path, parse }: Question<T>,
    { signal }: AskOptions,
  ): Promise<T> => {
    const place = { pod: pod.name, ip: pod.ip, port, path }
    let isAsked = false
    const limit = openLimit({
      clock,
      timeoutMs,
      signal,
      toError: () => (isAsked ? toSilent(place, timeoutMs) : toUnasked(place, timeoutMs)),
    })
    const put = async (): Promise<T> => {
      isAsked = true
      const maxBytes = o.maxBytes ?? MAX_BYTES[of]
      const json = await getJson({ ...place, maxBytes, signal: limit.signal })
      return naming(pod, () => parse(json))
    }
    try {
      return await limiter.run(`${of} ${pod.namespace}`, put, limit.signal)
    } finally {
      limit.close()
    }
  }
  return {
    servedByRouter: (pod, options) => ask(pod, SERVED_BY_ROUTER, options),
    servedByStep: (pod, options) => ask(pod, SERVED_BY_STEP, options),
    loadOfStep: (pod, options) => ask(pod, LOAD_OF_STEP, options),
  }
}

function toSilent(place: JsonPlace, timeoutMs: number): ServeError {
  return failureAt(place, 'DEADLINE_EXCEEDED', `no answer within ${timeoutMs} ms`)
}

/** Not the pod's fault: the next look asks it before those that were asked and silent. */
function toUnasked(place: JsonPlace, timeoutMs: number): ServeError {
  const problem = `not asked within ${timeoutMs} ms, as others of the namespace do not answer`
  return failureAt(place, 'OVERLOADED', problem)
}

interface Question<T> {
  readonly of: keyof typeof MAX_BYTES
  readonly path: string
  readonly parse: (json: unknown) => T
}

const SERVED = '/tutti/v1/served'
const SERVED_BY_ROUTER = { of: 'router', path: SERVED, parse: parseServedByRouter } as const
const SERVED_BY_STEP = { of: 'step', path: SERVED, parse: parseDescriptionJson } as const
const LOAD_OF_STEP = { of: 'step', path: '/tutti/v1/load', parse: parseStepLoad } as const

function naming<T>(pod: PodAddress, parse: () => T): T {
  try {
    return parse()
  } catch (cause) {
    const { reason, message, details } = ServeError.from(cause)
    throw new ServeError(reason, `pod "${pod.name}": ${message}`, { cause, details })
  }
}
