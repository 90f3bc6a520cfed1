import { createHash } from 'node:crypto'
import { Metadata } from '@grpc/grpc-js'
import { createLogger, parseFlags } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import type { ServeError } from '@tutti/errors'
import { fromGrpcStatus } from '@tutti/protocol'
import { InferenceClient } from '@tutti/protocol/client'
import type { IdentityRule } from '@tutti/serving'
import { type ModelScript, RecordingControl, ScriptedBackend } from '@tutti/serving/testing'
import { ServerMetrics } from '@tutti/telemetry'
import type { Test } from 'tap'
import { SERVER_FLAGS } from '../server-flags.ts'
import { openServers } from '../servers.ts'

const digest = (token: string): string => createHash('sha256').update(token).digest('hex')

/** Makes the rule of an identity with the token `token-of-NAME`, for the model `a`. */
export function rule(name: string, o: Partial<IdentityRule> = {}): IdentityRule {
  const tokenSha256 = [digest(`token of ${name}`.replaceAll(' ', '-'))]
  return { name, tokenSha256, certificates: [], models: ['a'], control: false, ...o }
}

/** Makes the header `authorization` of an identity that `rule` made. */
export const bearer = (name: string) => `Bearer token-of-${name}`

interface Line {
  readonly message: string
  readonly audit?: boolean
  readonly [field: string]: unknown
}

/** Opens the gRPC and REST servers of one process with identities, and a client. The end of the test closes all. */
export async function openAccess(
  t: Test,
  o: { identities?: readonly IdentityRule[]; script?: ModelScript; flags?: string[] },
) {
  let identities = o.identities
  const model = o.script === undefined ? {} : { script: o.script }
  const backend = new ScriptedBackend({ a: model, b: model })
  const control = new RecordingControl()
  backend.control = control
  backend.index = ['a', 'b'].map((name) => ({ name, version: '1', state: 'READY', reason: '' }))
  const ports = ['grpc', 'http', 'metrics'].flatMap((name) => [
    `--${name}-port=0`,
    `--${name}-address=127.0.0.1`,
  ])
  const lines: Line[] = []
  const metrics = new ServerMetrics()
  // Timers of the servers are of no interest here; certificates are valid from today on.
  const clock = createManualClock({ epochMs: Date.now() })
  const servers = await openServers({
    flags: parseFlags(SERVER_FLAGS, [...ports, ...(o.flags ?? [])]).values,
    backend,
    metrics,
    identities: identities && (() => identities ?? []),
    clock,
    log: createLogger({
      level: 'info',
      name: 'test',
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
    }),
  })
  const client = new InferenceClient({ address: `127.0.0.1:${servers.ports.grpcPort}` })
  t.teardown(async () => {
    client.close()
    await servers.close()
  })
  const overGrpc = (method: keyof typeof client.objects, request: object, token?: string) =>
    new Promise<{ code: string; error?: ServeError; answer?: object; pushback?: unknown }>(
      (resolve) => {
        const metadata = new Metadata()
        if (token !== undefined) metadata.set('authorization', token)
        const call = client.objects[method] as unknown as (
          request: object,
          metadata: Metadata,
          done: (
            error: (Error & { code: number; details: string; metadata: Metadata }) | null,
            answer?: object,
          ) => void,
        ) => void
        call.call(client.objects, request, metadata, (error, answer) => {
          if (error === null) return resolve({ code: 'OK', answer: answer ?? {} })
          const failure = fromGrpcStatus(error)
          const [pushback] = error.metadata.get('grpc-retry-pushback-ms')
          return resolve({ code: failure.code, error: failure, pushback })
        })
      },
    )
  const overRest = (path: string, token?: string, body?: string) =>
    fetch(`http://127.0.0.1:${servers.ports.httpPort}/v2${path}`, {
      ...(body !== undefined && { method: 'POST', body }),
      headers: token === undefined ? {} : { authorization: token },
    })
  const set = (changed: readonly IdentityRule[]): void => {
    identities = changed
  }
  const audited = () => lines.filter(({ audit }) => audit === true)
  return {
    overGrpc,
    overRest,
    control,
    clock,
    set,
    metrics,
    audited,
    lines,
    backend,
    client,
    servers,
  }
}

/** Makes the message of an inference over gRPC. */
export const INFER = (model: string) => ({ model_name: model })
/** The body of an inference over REST. */
export const REST_INFER = '{"inputs":[]}'
