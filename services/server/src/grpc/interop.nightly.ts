import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Http2Server } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { silentLogger, systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { Admission } from '../admission.ts'
import { listenOn } from '../listen.ts'
import { SERVER_IDENTITY } from '../server-identity.ts'
import { testMethods } from '../testing/interop/test-service.ts'
import { ScriptedBackend } from '../testing/scripted-backend.ts'
import { GRPC_SERVER_DEFAULTS, startGrpcServer } from './grpc-server.ts'

const run = promisify(execFile)

const INTEROP = 'google.golang.org/grpc/interop/client@v1.85.0'
/** How often a case of h2spec that failed is run again. */
const ALONE = 3
const H2SPEC = 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible'

/** All cases of the client but those of credentials, load balancing, ORCA's metrics and metadata in answers, which are not offered. */
const CASES = [
  'empty_unary',
  'large_unary',
  'client_streaming',
  'server_streaming',
  'ping_pong',
  'empty_stream',
  'timeout_on_sleeping_server',
  'cancel_after_begin',
  'cancel_after_first_response',
  'status_code_and_message',
  'special_status_message',
  'unimplemented_method',
  'unimplemented_service',
] as const

async function hasGo(): Promise<boolean> {
  try {
    await run('go', ['version'])
    return true
  } catch {
    return false
  }
}

/** Builds a Go program in a folder that goes with the test. @returns the folder. */
async function build(t: Test, program: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-go-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const env = [`GOBIN=${folder}`, 'GOFLAGS=-buildvcs=false']
  await run('env', [...env, 'go', 'install', program], { timeout: 600_000 })
  return folder
}

async function startTestServer(t: Test): Promise<number> {
  const server = await startGrpcServer({
    methods: testMethods(),
    identity: SERVER_IDENTITY,
    backend: new ScriptedBackend({}),
    address: '127.0.0.1',
    port: 0,
    admission: new Admission(),
    clock: systemClock,
    log: silentLogger,
  })
  t.teardown(() => server.close())
  return server.port
}

/** A server of node:http2 alone, answering as ours answers what is no gRPC. */
async function startBareServer(t: Test): Promise<number> {
  const { maxConcurrentStreamsPerConnection: maxConcurrentStreams } = GRPC_SERVER_DEFAULTS
  const server: Http2Server = createServer({ settings: { maxConcurrentStreams } })
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 415 }, { endStream: true })
    stream.close()
  })
  const port = await listenOn(server, { address: '127.0.0.1', port: 0, onError: () => {} })
  t.teardown(() => server.close())
  return port
}

/** Runs some of h2spec's cases, all if none is named. @returns titles of those that failed, by the name that h2spec takes. */
async function runH2spec(
  folder: string,
  port: number,
  ...names: readonly string[]
): Promise<ReadonlyMap<string, string>> {
  const report = join(folder, `${port}.xml`)
  const args = ['-h', '127.0.0.1', '-p', String(port), '-j', report, ...names]
  // It exits 1 if any case fails.
  await run(join(folder, 'h2spec'), args).catch(() => undefined)
  const cases = (await readFile(report, 'utf8')).split('<testcase ').slice(1)
  const least = names.length === 0 ? 100 : 1
  if (cases.length < least) throw new Error(`h2spec ran ${cases.length} cases, want ${least}`)
  const counts = new Map<string, number>()
  const failed = new Map<string, string>()
  for (const text of cases) {
    const [, section = '', title = ''] = /package="([^"]*)" classname="([^"]*)"/.exec(text) ?? []
    const number = (counts.get(section) ?? 0) + 1
    counts.set(section, number)
    if (/<failure|<error/.test(text)) failed.set(`${section}/${number}`, `${section}: ${title}`)
  }
  return failed
}

/**
 * Some cases hang on whether a frame comes before the answer to the one before it has ended the stream, which is no matter of the
 * server. One that fails in the whole run is run again alone, and counts only if it always fails.
 *
 * @returns the titles of h2spec's cases that failed.
 */
async function h2specFailures(folder: string, port: number): Promise<readonly string[]> {
  const failed: string[] = []
  for (const [name, title] of await runH2spec(folder, port)) {
    let left = ALONE
    while (left > 0 && (await runH2spec(folder, port, name)).size > 0) left -= 1
    if (left === 0) failed.push(title)
  }
  return failed
}

const skip = (await hasGo()) ? false : 'there is no Go'

await t.test("gRPC's interop cases pass", { skip, timeout: 900_000 }, async (t) => {
  const folder = await build(t, INTEROP)
  const port = await startTestServer(t)
  for (const name of CASES) {
    const o = [`--server_host=127.0.0.1`, `--server_port=${port}`, `--test_case=${name}`]
    await t.resolves(run(join(folder, 'client'), o, { timeout: 60_000 }), name)
  }
})

await t.test(
  'HTTP/2 is spoken no worse than by Node itself',
  { skip, timeout: 900_000 },
  async (t) => {
    const folder = await build(t, H2SPEC)
    const nodes = await h2specFailures(folder, await startBareServer(t))
    const ours = await h2specFailures(folder, await startTestServer(t))
    t.comment(`node:http2 alone fails ${nodes.length} cases`, nodes)
    t.same(
      ours.filter((title) => !nodes.includes(title)),
      [],
    )
  },
)
