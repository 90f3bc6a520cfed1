/** One gRPC call. Requests are messages as JSON, with bytes in base64; several of them are written to one stream. */
export interface GrpcCall {
  readonly rpc: string
  readonly requests: readonly unknown[]
  /** The encoded message, base64, instead of a request. */
  readonly bytes?: string
  readonly metadata?: Readonly<Record<string, string>>
  /** Responses of several requests may come in any order between them, and a final flag alone or with the last one. */
  readonly isUnordered?: boolean
}

/** One HTTP call on a connection of its own. */
export interface RestCall {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The body, base64, if it is not text. */
  readonly base64?: string
}

/** By how much statistics and metrics of some models have grown since the case began. */
export interface CountsCall {
  readonly counts: readonly string[]
}

/** Waits until no model is being loaded or unloaded. */
export interface SettleCall {
  readonly settle: true
}

export type Call = GrpcCall | RestCall | CountsCall | SettleCall

/** Calls that are made one after the other. */
export interface Case {
  readonly id: string
  /** Files that the case adds for its time: path -> text, or bytes as `base64:...`. Its models are unloaded in the end. */
  readonly files?: Readonly<Record<string, string>>
  readonly calls: readonly Call[]
}

/** The models that a case adds. */
export function addedModels({ files = {} }: Pick<Case, 'files'>): readonly string[] {
  return [...new Set(Object.keys(files).map((path) => path.split('/')[0] ?? ''))]
}

/** Answer of a server to one call, as JSON in which nothing depends on the run: status, text, body, headers. */
export type Answer = Readonly<Record<string, unknown>>

/** Where a difference is, for people: the RPC, or method and path without names. */
export function surfaceOf(call: Call): string {
  if ('rpc' in call) return call.rpc
  if ('path' in call) {
    const [path = ''] = call.path.split('?')
    return `${call.method} ${path
      .replace(/\/models\/(?!stats$)[^/]+/, '/models/M')
      .replace(/\/versions\/[^/]+/, '/versions/V')
      .replace(/\/region\/[^/]+/, '/region/R')}`
  }
  return 'counts' in call ? 'statistics and metrics' : 'settle'
}
