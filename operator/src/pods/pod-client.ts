import { Agent } from 'node:http'
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
import { LruMap } from '../runtime/lru-map.ts'
import { getJson } from './get-json.ts'

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
 * POD_UNREACHABLE, DEADLINE_EXCEEDED, MESSAGE_TOO_LARGE, MALFORMED_MESSAGE; or the signal's reason if it aborts.
 */
export interface PodClient {
  servedByRouter(pod: PodAddress, o: AskOptions): Promise<ServedByRouter>
  servedByStep(pod: PodAddress, o: AskOptions): Promise<StepDescription>
  loadOfStep(pod: PodAddress, o: AskOptions): Promise<StepLoad>
  /** Ends the connections. */
  close(): Promise<void>
}

export interface PodClientOptions {
  readonly clock: Clock
  /** Of the metrics listener; default METRICS_PORT. */
  readonly port?: number
  /** For one answer; default 5000: a pod that takes longer is as good as away. */
  readonly timeoutMs?: number
  /** Of one answer; default MAX_BYTES. */
  readonly maxBytes?: number
  /** Connections at the same time, all pods of a namespace together; default 8. */
  readonly maxConnections?: number
}

/** Of an answer: a router of some ten thousand models; a step of more than a ControllerRevision can hold. */
const MAX_BYTES = { router: 8 * 2 ** 20, step: 2 * 2 ** 20 } as const
/** Namespaces whose connections are kept; one more costs the one that was asked longest ago its own. */
const MOST_NAMESPACES = 4096

/** Where all our processes answer the operator. */
export const METRICS_PORT = 8002

export function createPodClient(o: PodClientOptions): PodClient {
  const { clock, port = METRICS_PORT, timeoutMs = 5000, maxConnections = 8 } = o
  // Each namespace has connections of its own: what runs in pods is its tenant's, and may be silent on purpose.
  const agents = new LruMap<Agent>(MOST_NAMESPACES, (agent) => agent.destroy())
  const agentOf = (namespace: string): Agent => {
    const known = agents.get(namespace)
    if (known !== undefined) return known
    const agent = new Agent({
      keepAlive: true,
      maxSockets: 1,
      maxTotalSockets: maxConnections,
      // Below the 5 s after which Node's servers close an idle connection.
      timeout: 4000,
    })
    agents.set(namespace, agent)
    return agent
  }
  const ask = async <T>(
    pod: PodAddress,
    question: { readonly path: string; readonly maxBytes: number },
    parseAnswer: (json: unknown) => T,
    { signal }: AskOptions,
  ): Promise<T> => {
    const { path, maxBytes } = question
    const place = { agent: agentOf(pod.namespace), clock, pod: pod.name, ip: pod.ip, port, path }
    const json = await getJson({ ...place, timeoutMs, maxBytes: o.maxBytes ?? maxBytes, signal })
    return naming(pod, () => parseAnswer(json))
  }
  const served = '/tutti/v1/served'
  return {
    servedByRouter: (pod, options) =>
      ask(pod, { path: served, maxBytes: MAX_BYTES.router }, parseServedByRouter, options),
    servedByStep: (pod, options) =>
      ask(pod, { path: served, maxBytes: MAX_BYTES.step }, parseDescriptionJson, options),
    loadOfStep: (pod, options) =>
      ask(pod, { path: '/tutti/v1/load', maxBytes: MAX_BYTES.step }, parseStepLoad, options),
    close: async () => {
      for (const [, agent] of agents.entries()) agent.destroy()
    },
  }
}

function naming<T>(pod: PodAddress, parse: () => T): T {
  try {
    return parse()
  } catch (cause) {
    const { reason, message, details } = ServeError.from(cause)
    throw new ServeError(reason, `pod "${pod.name}": ${message}`, { cause, details })
  }
}
