import {
  parseDescriptionJson,
  parseServedByRouter,
  parseStartProgress,
  parseStepLoad,
  parseWantedByRouter,
  type ServedByRouter,
  type StartProgress,
  type StepDescription,
  type StepLoad,
  type WantedByRouter,
} from '@tutti/api'
import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { KeyedLimiter } from '../runtime/keyed-limiter.ts'
import { openLimit } from '../runtime/open-limit.ts'
import { failureAt, getPodJson, type JsonPlace } from './get-json.ts'

/** The address of a pod of a router or step. */
export interface PodAddress {
  readonly namespace: string
  readonly name: string
  /** IP address of the pod, IPv4 or IPv6. */
  readonly ip: string
}

export interface PodCallOptions {
  readonly signal: AbortSignal
}

/**
 * Asks routers and steps what they serve, and steps for their load. Every call ends within `timeoutMs`, including the time that
 * it waits for other calls of its namespace; that for a router's demand ends within 20 s.
 *
 * Every method throws a ServeError that names the pod: POD_UNREACHABLE; DEADLINE_EXCEEDED; MESSAGE_TOO_LARGE; MALFORMED_MESSAGE;
 * OVERLOADED if the request was not sent in time, or too many long answers came at once. It throws the signal's reason if the
 * signal aborts.
 */
export interface PodClient {
  servedByRouter(pod: PodAddress, o: PodCallOptions): Promise<ServedByRouter>
  servedByStep(pod: PodAddress, o: PodCallOptions): Promise<StepDescription>
  /** Asks a pod that fetches or loads how far it is. */
  startOfStep(pod: PodAddress, o: PodCallOptions): Promise<StartProgress>
  loadOfStep(pod: PodAddress, o: PodCallOptions): Promise<StepLoad>
  /**
   * Asks a router for which Models requests wait. It answers when that changes, or after ten seconds.
   *
   * @param o.seen - `seen` of its last answer; '' to be answered at once.
   */
  wantedByRouter(
    pod: PodAddress,
    o: PodCallOptions & { readonly seen: string },
  ): Promise<WantedByRouter>
}

export interface PodClientOptions {
  readonly clock: Clock
  /** Port of the metrics listener; default METRICS_PORT. */
  readonly port?: number
  /** Milliseconds within which a call ends; default 5000. */
  readonly timeoutMs?: number
  /** Most bytes of one answer; the default depends on the call. */
  readonly maxBytes?: number
  /** Most bytes of all answers that are being read; default 64 MiB, which one namespace cannot fill. */
  readonly maxHeldBytes?: number
  /** Most connections to steps of one namespace at once, and as many to its routers; default 8. */
  readonly maxConnections?: number
}

const MIB = 2 ** 20
/** Longer than a router waits for a change of its demand. */
const DEMAND_MS = 20_000
/** A question for each router of a namespace may be open; it can have so many. */
const MOST_ROUTERS = 100

/** Port at which all processes of Tutti answer the operator. */
const METRICS_PORT = 8002

export function createPodClient(o: PodClientOptions): PodClient {
  const { clock, port = METRICS_PORT } = o
  // Pods run code of their namespace, which may be silent on purpose; code in steps may be silent without anybody having meant it.
  const brief = new KeyedLimiter({ perKey: o.maxConnections ?? 8 })
  // These questions stay open, and must not keep others waiting.
  const open = new KeyedLimiter({ perKey: MOST_ROUTERS })
  const answers = { held: 0, most: o.maxHeldBytes ?? 64 * MIB }
  const ask = async <T>(
    pod: PodAddress,
    question: Question<T>,
    { signal }: PodCallOptions,
  ): Promise<T> => {
    const { of, path, parse, timeoutMs = o.timeoutMs ?? 5000 } = question
    const limiter = of === 'demand' ? open : brief
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
      const maxBytes = o.maxBytes ?? question.maxBytes
      const bounds = { answers, maxBytes, maxValues: question.maxValues, signal: limit.signal }
      const json = await getPodJson({ ...place, ...bounds })
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
    startOfStep: (pod, options) => ask(pod, START_OF_STEP, options),
    loadOfStep: (pod, options) => ask(pod, LOAD_OF_STEP, options),
    wantedByRouter: (pod, { seen, signal }) => {
      const path = `${WANTED_BY_ROUTER.path}?seen=${encodeURIComponent(seen)}`
      return ask(pod, { ...WANTED_BY_ROUTER, path }, { signal })
    },
  }
}

function toSilent(place: JsonPlace, timeoutMs: number): ServeError {
  return failureAt(place, 'DEADLINE_EXCEEDED', `no answer within ${timeoutMs} ms`)
}

/**
 * Makes the error of a pod that was not asked. This is not the pod's fault, so the next look asks it before pods that were
 * silent.
 */
function toUnasked(place: JsonPlace, timeoutMs: number): ServeError {
  const problem = `not asked within ${timeoutMs} ms, as others of the namespace do not answer`
  return failureAt(place, 'OVERLOADED', problem)
}

interface Question<T> {
  readonly of: 'router' | 'step' | 'demand'
  /** Milliseconds within which it ends; that of the client if absent. */
  readonly timeoutMs?: number
  readonly path: string
  /** Most bytes of the answer. One process asks for all namespaces, and an answer may be anything. */
  readonly maxBytes: number
  /** Most values in the answer, as parseBoundedJson counts them. To check so many takes 0.2 s at worst. */
  readonly maxValues: number
  readonly parse: (json: unknown) => T
}

const SERVED = '/tutti/v1/served'
/** Question to a router. Its bounds allow some ten thousand models of eight values each. */
const SERVED_BY_ROUTER: Question<ServedByRouter> = {
  of: 'router',
  path: SERVED,
  maxBytes: 4 * MIB,
  maxValues: 2 ** 18,
  parse: parseServedByRouter,
}
/** Question to a step. Its bounds exceed what a ControllerRevision can hold, with 100,000 labels. */
const SERVED_BY_STEP: Question<StepDescription> = {
  of: 'step',
  path: SERVED,
  maxBytes: 2 * MIB,
  maxValues: 2 ** 17,
  parse: parseDescriptionJson,
}
const START_OF_STEP: Question<StartProgress> = {
  of: 'step',
  path: '/tutti/v1/start',
  maxBytes: MIB,
  maxValues: 2 ** 14,
  parse: parseStartProgress,
}
const LOAD_OF_STEP: Question<StepLoad> = {
  of: 'step',
  path: '/tutti/v1/load',
  maxBytes: MIB,
  maxValues: 2 ** 16,
  parse: parseStepLoad,
}

/** Its bounds allow some ten thousand names. */
const WANTED_BY_ROUTER: Question<WantedByRouter> = {
  of: 'demand',
  path: '/tutti/v1/wanted',
  timeoutMs: DEMAND_MS,
  maxBytes: MIB,
  maxValues: 2 ** 14,
  parse: parseWantedByRouter,
}

function naming<T>(pod: PodAddress, parse: () => T): T {
  try {
    return parse()
  } catch (cause) {
    const { reason, message, details } = ServeError.from(cause)
    throw new ServeError(reason, `pod "${pod.name}": ${message}`, { cause, details })
  }
}
