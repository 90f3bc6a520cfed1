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
import { getJson } from './get-json.ts'

/** Where a pod of ours is asked. */
export interface PodAddress {
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
  /** Of one answer; default 16 MiB, a router of some thousand models. */
  readonly maxBytes?: number
  /** Connections at the same time, all pods together; default 64. */
  readonly maxConnections?: number
}

/** Where all our processes answer the operator. */
export const METRICS_PORT = 8002

export function createPodClient(o: PodClientOptions): PodClient {
  const { clock, port = METRICS_PORT, timeoutMs = 5000, maxBytes = 16 * 2 ** 20 } = o
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 1,
    maxTotalSockets: o.maxConnections ?? 64,
    // Below the 5 s after which Node's servers close an idle connection.
    timeout: 4000,
  })
  const ask = async <T>(
    pod: PodAddress,
    path: string,
    parseAnswer: (json: unknown) => T,
    { signal }: AskOptions,
  ): Promise<T> => {
    const place = { agent, clock, pod: pod.name, ip: pod.ip, port, path }
    const json = await getJson({ ...place, timeoutMs, maxBytes, signal })
    return naming(pod, () => parseAnswer(json))
  }
  return {
    servedByRouter: (pod, { signal }) =>
      ask(pod, '/tutti/v1/served', parseServedByRouter, { signal }),
    servedByStep: (pod, { signal }) =>
      ask(pod, '/tutti/v1/served', parseDescriptionJson, { signal }),
    loadOfStep: (pod, { signal }) => ask(pod, '/tutti/v1/load', parseStepLoad, { signal }),
    close: async () => agent.destroy(),
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
