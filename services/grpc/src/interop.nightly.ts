import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { silentLogger, systemClock } from '@tutti/chassis'
import { Admission, SERVER_IDENTITY } from '@tutti/serving'
import { ScriptedBackend } from '@tutti/serving/testing'
import t, { type Test } from 'tap'
import { startGrpcServer } from './grpc-server.ts'
import { testMethods } from './testing/interop/test-service.ts'

const run = promisify(execFile)

const INTEROP = 'google.golang.org/grpc/interop/client@v1.85.0'

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

const skip = (await hasGo()) ? false : 'there is no Go'

await t.test("gRPC's interop cases pass", { skip, timeout: 900_000 }, async (t) => {
  const folder = await build(t, INTEROP)
  const port = await startTestServer(t)
  for (const name of CASES) {
    const o = [`--server_host=127.0.0.1`, `--server_port=${port}`, `--test_case=${name}`]
    await t.resolves(run(join(folder, 'client'), o, { timeout: 60_000 }), name)
  }
})
