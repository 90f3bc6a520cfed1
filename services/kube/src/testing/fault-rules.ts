import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

/** A request as the proxy receives it. */
export interface ProxiedRequest {
  readonly method: string
  /** Path of the URL, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly isWatch: boolean
  /** POST, PUT, PATCH or DELETE that is no dry run. */
  readonly isWrite: boolean
  /** The body's text. */
  readonly body: string
}

/** A fault of the proxy for one request. */
export type Fault =
  /** The request is passed on once the promise is fulfilled. */
  | { readonly type: 'wait'; readonly until: Promise<unknown> }
  /** The request is neither passed on nor answered. */
  | { readonly type: 'drop' }
  /** The request is not passed on, and its connection is reset. */
  | { readonly type: 'reset' }
  /** The server carries out the request, and the connection is reset before the answer. */
  | { readonly type: 'lose' }
  /** The request is not passed on; the answer is a metav1.Status. */
  | {
      readonly type: 'answer'
      readonly status: number
      readonly reason?: string
      readonly message?: string
      /** Seconds, as header `Retry-After`. */
      readonly retryAfter?: number
    }
  /** A watch begins, and its first line is an ERROR event with that status. */
  | { readonly type: 'watch-error'; readonly status: number; readonly reason?: string }

export interface FaultRule {
  /** Conditions that must fit, beside `when`; what is absent fits all. */
  readonly method?: string
  readonly path?: RegExp
  readonly isWatch?: boolean
  readonly isWrite?: boolean
  readonly when?: (request: ProxiedRequest) => boolean
  /** Number of requests that get the fault; unlimited if absent. */
  readonly times?: number
  readonly fault: Fault
}

export type FaultRules = ReturnType<typeof createFaultRules>

/** Makes an empty list of a proxy's rules. If several rules fit a request, the oldest counts. */
export function createFaultRules() {
  const rules = new Set<{ readonly rule: FaultRule; left: number }>()
  return {
    /** Adds a rule. @returns a function that removes the rule. */
    add: (rule: FaultRule): (() => void) => {
      const entry = { rule, left: rule.times ?? Number.POSITIVE_INFINITY }
      rules.add(entry)
      return () => void rules.delete(entry)
    },
    clear: () => rules.clear(),
    /** Takes the fault for a request; undefined without a fitting rule. The request counts for the rule's `times`. */
    take: (request: ProxiedRequest): Fault | undefined => {
      for (const entry of rules) {
        if (!fits(entry.rule, request)) continue
        entry.left -= 1
        if (entry.left <= 0) rules.delete(entry)
        return entry.rule.fault
      }
      return undefined
    },
  }
}

/** The metav1.Status of an `answer`, or of a `watch-error`. */
function statusOf(fault: {
  readonly status: number
  readonly reason?: string
  readonly message?: string
}): unknown {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: fault.message ?? 'a fault that the test has scripted',
    reason: fault.reason ?? REASONS[fault.status] ?? '',
    code: fault.status,
  }
}

const REASONS: Readonly<Record<number, string>> = {
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

function fits(rule: FaultRule, request: ProxiedRequest): boolean {
  return (
    (rule.method === undefined || rule.method === request.method) &&
    (rule.path === undefined || rule.path.test(request.path)) &&
    (rule.isWatch === undefined || rule.isWatch === request.isWatch) &&
    (rule.isWrite === undefined || rule.isWrite === request.isWrite) &&
    (rule.when === undefined || rule.when(request))
  )
}

/** Answers a request with a fault, in place of the server. */
export function answerFault(
  fault: Extract<Fault, { type: 'answer' | 'watch-error' }>,
  response: ServerResponse,
): void {
  const status = statusOf(fault)
  response.setHeader('content-type', 'application/json')
  if (fault.type === 'watch-error') {
    response.end(`${JSON.stringify({ type: 'ERROR', object: status })}\n`)
    return
  }
  if (fault.retryAfter !== undefined) response.setHeader('retry-after', fault.retryAfter)
  response.statusCode = fault.status
  response.end(JSON.stringify(status))
}

/** Reads a request to its end. */
export async function readRequest(incoming: IncomingMessage): Promise<ProxiedRequest> {
  const method = incoming.method ?? 'GET'
  const url = new URL(incoming.url ?? '/', 'https://proxy')
  const body = await text(incoming)
  const isWatch = ['1', 'true'].includes(url.searchParams.get('watch') ?? '')
  const isWrite = method !== 'GET' && method !== 'HEAD' && !url.searchParams.has('dryRun')
  return { method, path: url.pathname, query: url.searchParams, isWatch, isWrite, body }
}

/** Selects the headers of an answer that the proxy passes on. */
export function passedHeaders(answer: IncomingMessage): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(answer.headers)) {
    // The length and the cutting into chunks are the proxy's own matter.
    const isOwn = ['connection', 'content-length', 'transfer-encoding'].includes(name)
    if (value !== undefined && !isOwn) headers[name] = value
  }
  return headers
}
