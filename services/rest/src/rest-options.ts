import {
  type Clock,
  type Logger,
  type LogSettings,
  silentLogger,
  systemClock,
} from '@tutti/chassis'
import {
  type AccessLog,
  Admission,
  type BackendSelector,
  ClientRequests,
  ControlCalls,
  type ControlGuard,
  type InferenceBackend,
  type ListenerBounds,
  SERVER_IDENTITY,
  type ServerIdentity,
  type TlsFiles,
} from '@tutti/serving'
import type { TraceSettings } from '@tutti/telemetry'
import { JSON_DEFAULTS, type JsonBounds, JsonThread } from './bodies/json-thread.ts'
import type { RestRoute } from './call/rest-route.ts'

/** The options of a REST server; one that is absent has the default of `REST_DEFAULTS`. */
export interface RestServerOptions extends Partial<RestBounds> {
  readonly backend: InferenceBackend
  /** Selector of the backend of each call; absent: every call reaches `backend`. */
  readonly select?: BackendSelector
  /** IP address or host name to listen on. */
  readonly address: string
  /** 0 for any free port. Triton's default is 8000. */
  readonly port: number
  /** Check of who may load and unload models; absent: everybody may. */
  readonly guardControl?: ControlGuard
  /** Log of who changes the server; absent: none. */
  readonly accessLog?: AccessLog | undefined
  /** The settings of the log that clients may read and change; none if absent. */
  readonly logSettings?: LogSettings | undefined
  /** The settings of the traces in files that clients may read and change; not offered if absent. */
  readonly traceSettings?: TraceSettings | undefined
  /** Absent: HTTP without TLS. */
  readonly tls?: TlsFiles | undefined
  /** Routes in place of those of the v2 HTTP API. */
  readonly routes?: readonly RestRoute[] | undefined
  /** Headers of every answer. */
  readonly headers?: Readonly<Record<string, string>>
  /** The identity that `GET /v2` answers. */
  readonly identity?: ServerIdentity
  /** The admission that all servers of the process share; absent: the server has its own. */
  readonly admission?: Admission
  /** The JSON thread that all servers of the process share; absent: the server has its own. */
  readonly json?: JsonThread
  /** Counter of clients' requests; absent: they are not counted. */
  readonly requests?: ClientRequests
  readonly clock?: Clock
  readonly log?: Logger
}

/** The bounds of one REST server, all of them settings of the executables. */
export interface RestBounds extends ListenerBounds, JsonBounds {
  /** Bytes of one body, after decompression. */
  readonly maxInputBytes: number
  /** Time from the first byte of a request to the last byte of its head; checked every 5 s at least. */
  readonly headersTimeoutMs: number
  /** Time from the first byte of a request to its last, which bounds its head too. */
  readonly requestTimeoutMs: number
  /** Time after which an idle connection is closed. */
  readonly keepAliveMs: number
  /** Time from the first byte of an answer to its last: a client that does not read would hold its tensors. */
  readonly writeTimeoutMs: number
}

export const REST_DEFAULTS: RestBounds = {
  /** Triton's --http-max-input-size. */
  maxInputBytes: 64 * 1024 * 1024,
  maxConnections: 1024,
  maxConnectionsPerAddress: 0,
  headersTimeoutMs: 30_000,
  requestTimeoutMs: 300_000,
  keepAliveMs: 75_000,
  writeTimeoutMs: 300_000,
  ...JSON_DEFAULTS,
}

/** Options with every default filled in. */
export interface CompiledRestOptions extends Required<RestServerOptions> {
  readonly control: ControlCalls
}

export function compileRestOptions(o: RestServerOptions): CompiledRestOptions {
  const { clock = systemClock } = o
  return {
    identity: SERVER_IDENTITY,
    guardControl: () => {},
    accessLog: undefined,
    control: new ControlCalls(o),
    admission: o.admission ?? new Admission(),
    clock,
    requests: o.requests ?? new ClientRequests({ protocol: 'http', clock }),
    json: o.json ?? new JsonThread({ ...JSON_DEFAULTS, ...o, clock }),
    log: silentLogger,
    select: () => o.backend,
    tls: undefined,
    routes: undefined,
    headers: {},
    logSettings: undefined,
    traceSettings: undefined,
    ...REST_DEFAULTS,
    ...o,
  }
}
