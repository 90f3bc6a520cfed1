import { once } from 'node:events'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { createLogger, parseFlags, silentLogger, systemClock } from '@tutti/chassis'
import { FLAGS_RULE, type ModelControl } from '@tutti/serving'
import { failsWith, type ModelScript, response, ScriptedBackend } from '@tutti/serving/testing'
import { ServerMetrics } from '@tutti/telemetry'
import t from 'tap'
import { openRegions } from './open-regions.ts'
import { SERVER_FLAGS } from './server-flags.ts'
import { openServers } from './servers.ts'

const HOST = 'models.example'
const BODY = JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }] })

/** fetch sets the header Host itself. */
function infer(port: number | undefined, host: string, model = 'm'): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { port, method: 'POST', path: `/v2/models/${model}/infer`, headers: { host } }
    const sent = request({ ...options, host: '127.0.0.1' }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    sent.on('error', reject)
    sent.end(BODY)
  })
}

const EDGE = [{ hosts: ['127.0.0.1'], models: ['m'] }]

await t.test('requests from outside leave places to those from inside', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let count = 0
  let isHeld = true
  const script: ModelScript = async function* (asked) {
    count += 1
    if (count === 3) arrived.resolve()
    if (isHeld) await released.promise
    yield response(asked, asked.inputs)
  }
  const backend = new ScriptedBackend({ m: { script } })
  const ports = ['grpc', 'http', 'metrics'].map((name) => `--${name}-port=0`)
  const { values } = parseFlags(SERVER_FLAGS, ['--max-inflight-requests=4', ...ports])
  const access = { routes: [{ hosts: [HOST], models: ['m'] }] }
  const servers = await openServers({
    flags: values,
    backend,
    metrics: new ServerMetrics(),
    edge: {
      access: () => access,
      address: '127.0.0.1',
      grpcPort: 0,
      httpPort: 0,
    },
    clock: systemClock,
    log: silentLogger,
  })
  t.teardown(() => servers.close())
  const { edgeHttpPort, httpPort } = servers.ports
  const outside = Array.from({ length: 10 }, () => infer(edgeHttpPort, HOST))
  await arrived.promise
  t.equal(await infer(edgeHttpPort, HOST), 503)
  isHeld = false
  t.equal(await infer(httpPort, 'inside'), 200)
  released.resolve()
  const answers = await Promise.all(outside)
  t.same(answers.filter((status) => status === 200).length, 3)
  t.same(answers.filter((status) => status === 503).length, 7)
  t.equal(await infer(edgeHttpPort, HOST), 200)
})

await t.test('clients cannot fill the log', async (t) => {
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const lines: { readonly message: string; readonly level: string }[] = []
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) }
  const script: ModelScript = async function* (request) {
    asked.resolve()
    await released.promise
    yield response(request, request.inputs)
  }
  const ports = ['grpc', 'http', 'metrics'].map((name) => `--${name}-port=0`)
  const servers = await openServers({
    flags: parseFlags(SERVER_FLAGS, ['--max-connections=1', ...ports]).values,
    backend: new ScriptedBackend({
      m: { script },
      broken: { script: failsWith(new TypeError('odd')) },
    }),
    metrics: new ServerMetrics(),
    clock: systemClock,
    log: createLogger({ level: 'debug', name: 'test', destination }),
  })
  t.teardown(() => servers.close())
  const { httpPort = 0 } = servers.ports
  const told = (message: string, level: string) =>
    lines.filter((line) => line.message === message && line.level === level).length

  await t.test(
    'with faults of ours, which are told, and what they do wrong, in details',
    async (t) => {
      const statuses = new Set<number | undefined>()
      for (let i = 0; i < 250; i += 1) statuses.add(await infer(httpPort, HOST, 'broken'))
      for (let i = 0; i < 150; i += 1) statuses.add(await infer(httpPort, HOST, 'absent'))
      const errors = told('http request failed', 'error')
      t.ok(errors >= 100 && errors < 200, `${errors} lines of errors`)
      t.equal(told('http request failed', 'debug'), 150)
      t.same([...statuses], [500, 404])
    },
  )

  await t.test('with connections over the bound', async (t) => {
    const held = infer(httpPort, HOST)
    await asked.promise
    for (let i = 0; i < 300; i += 1) {
      const socket = connect(httpPort, '127.0.0.1')
      socket.on('error', () => {})
      await once(socket, 'close')
    }
    released.resolve()
    t.equal(await held, 200)
    const dropped = told('connection dropped at the bound', 'warn')
    t.ok(dropped >= 100 && dropped < 200, `${dropped} lines`)
  })
})

await t.test('an address that is taken is refused with the flag that names its port', async (t) => {
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  t.teardown(() => holder.close())
  const address = holder.address()
  const port = typeof address === 'object' ? address?.port : undefined
  for (const taken of ['grpc', 'http', 'metrics']) {
    const flags = ['grpc', 'http', 'metrics'].flatMap((name) => [
      `--${name}-address=127.0.0.1`,
      `--${name}-port=${name === taken ? port : 0}`,
    ])
    const opened = openServers({
      flags: parseFlags(SERVER_FLAGS, flags).values,
      backend: new ScriptedBackend({}),
      metrics: new ServerMetrics(),
      clock: systemClock,
      log: silentLogger,
    })
    await t.rejects(opened, {
      reason: 'SETTING_INVALID',
      message: new RegExp(
        `^--${taken}-port: cannot listen on 127\\.0\\.0\\.1:${port}: .*EADDRINUSE`,
      ),
      cause: undefined,
    })
  }
})

await t.test('clients share memory by default where only this machine calls', async (t) => {
  const local = ['--http-address=127.0.0.1', '--grpc-address=localhost']
  const rows: readonly (readonly [readonly string[], ModelControl | undefined, boolean])[] = [
    [local, undefined, true],
    [local, FLAGS_RULE, false],
    [[...local, '--allow-client-shm=false'], undefined, false],
    [['--http-address=127.0.0.1'], undefined, false],
    [['--http-address=127.0.0.1', '--allow-grpc=false'], undefined, true],
    [['--allow-client-shm'], FLAGS_RULE, true],
  ]
  for (const [flags, control, isShared] of rows) {
    const backend = new ScriptedBackend({})
    if (control !== undefined) backend.control = control
    const ports = ['grpc', 'http', 'metrics'].map((name) => `--${name}-port=0`)
    const opened = new AsyncDisposableStack()
    const { values } = parseFlags(SERVER_FLAGS, [...flags, ...ports])
    const isOneProcess = control === undefined
    backend.regions = openRegions({ flags: values, isOneProcess, opened })
    const servers = await openServers({
      flags: values,
      backend,
      metrics: new ServerMetrics(),
      edge: { access: () => ({ routes: EDGE }), address: '127.0.0.1', grpcPort: 0, httpPort: 0 },
      clock: systemClock,
      log: silentLogger,
    })
    t.equal(await listsMemory(servers.ports.httpPort), isShared, flags.join(' '))
    t.equal(await listsMemory(servers.ports.edgeHttpPort), false, 'never to the outside')
    await servers.close()
    await opened.disposeAsync()
  }
})

async function listsMemory(port: number | undefined): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2`)
  return (await answer.text()).includes('"system_shared_memory","cuda_shared_memory"')
}
