// needs: nats
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createHealth,
  createLogger,
  type Executable,
  type FlagTable,
  loadTracingSettings,
  parseFlags,
} from '@tutti/chassis'
import {
  createNatsKey,
  createTestCertificates,
  type NatsServer,
  startNatsServer,
  until,
  withoutNatsServer,
} from '@tutti/chassis/testing'
import { parseModelConfig } from '@tutti/model-config'
import { routerExecutable } from '@tutti/router'
import { stepExecutable } from '@tutti/step'
import t, { type Test } from 'tap'
import { run } from './run.ts'

const ROOT = join(import.meta.dirname, '../../..')
const BASIC = join(ROOT, 'model_repository/.variants/fixtures/basic')
const REPOSITORY = `--model-repository=${BASIC}`

async function command(...argv: string[]) {
  const printed = { out: '', err: '' }
  const code = await run(argv, {
    env: {},
    out: (text) => (printed.out += text),
    err: (text) => (printed.err += text),
    signals: { listen: () => () => {} },
    exit: () => {},
  })
  return { code, ...printed }
}

await t.test('step and router explain their flags', async (t) => {
  for (const name of ['step', 'router']) {
    const { code, out } = await command(name, '--help')
    t.equal(code, 0)
    for (const flag of ['--model-repository', '--nats ', '--nats-tls-ca', '--grpc-port']) {
      t.match(out, flag, `${name} ${flag}`)
    }
  }
  t.match(await command('--help'), {
    out: /serve [^]*\n *config [^]*\n *step [^]*\n *router [^]*\n *fetch /,
  })
})

await t.test('what is not understood ends with 2 and says what was wanted', async (t) => {
  const nats = '--nats=nats://127.0.0.1:1'
  const cases: [string[], RegExp][] = [
    [['step', '--nat=x'], /unknown flag --nat; did you mean --nats\?/],
    [['router', 'models'], /got 'models', want flags only/],
    [['router'], /^tutti router: --nats: got none/],
    [['router', '--nats-user=a', nats], /^tutti router: --nats-user: got it alone/],
    [['step', nats], /^tutti step: --model-repository: got none/],
    [['step', REPOSITORY, '--nats=x'], /^tutti step: --nats: "x", want nats:/],
    [
      ['router', nats, '-f=x', '--kubernetes'],
      /^tutti router: --filename: got it with --kubernetes/,
    ],
    [
      ['router', nats, '-f=x', REPOSITORY, '--model-control-mode=poll'],
      /^tutti router: --filename: got it with --model-control-mode=poll, want none/,
    ],
  ]
  for (const [argv, text] of cases) {
    t.match(await command(...argv), { code: 2, err: text }, argv.join(' '))
  }
})

const ensemble = (name: string): string => `
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: { name: e }
spec:
  inputs: [{ name: x, datatype: FP32, shape: [16] }]
  outputs: [{ name: sum, from: a.Y }]
  steps: [{ name: a, modelRef: { name: ${name} }, inputMap: { X: x } }]`

await t.test('a router says what is wrong with its manifests, and does not start', async (t) => {
  const folder = t.testdir({ 'a.yaml': ensemble('add_two'), 'b.yaml': ensemble('add_one') })
  const nats = '--nats=nats://127.0.0.1:1'
  const refused = await command('router', nats, `-f=${folder}/a.yaml`, REPOSITORY)
  t.match(refused, { code: 1, err: /steps\[0\]\(a\)\.modelRef\.name: .*'add_two'.*add_one/ })
  const unknown = await command('router', nats, `-f=${folder}/b.yaml`)
  t.match(unknown, { code: 1, err: /'add_one'.*SchemaPending/ })
  const other = {
    'b.yaml': ensemble('add_one').replace('{ name: e }', '{ name: e, namespace: b }'),
  }
  const two = t.testdir({ 'a.yaml': ensemble('add_one'), ...other })
  const apart = await command('router', nats, `-f=${two}`, REPOSITORY)
  t.match(apart, { code: 1, err: /b\.yaml:.*metadata\.namespace: got 'b', want 'default'/ })
})

/** The steps and routers that a page starts. */
async function commandsOf(page: string) {
  const text = await readFile(join(ROOT, page), 'utf8')
  const lines = text.matchAll(/^npm run tutti -- (step|router) +(--.*)$/gm)
  return [...lines].map(([, role, flags = '']) => ({ role, argv: flags.split(/ +/) }))
}

// Executes docs/processes.md: nats-server
// Executes docs/processes.md: npm run tutti -- step
await t.test('the commands of docs/processes.md serve all that its ensemble needs', async (t) => {
  // The page starts one of them in two ways.
  const served = new Set<string>()
  for (const { role, argv } of await commandsOf('docs/processes.md')) {
    // Those of the broker's section name files that their reader has.
    if (argv.includes('--nats=nats://127.0.0.1:4222')) {
      if (role === 'step') {
        const { values } = parseFlags(stepExecutable.flags, argv)
        stepExecutable.check(values)
        for (const model of values.model) served.add(model)
      } else routerExecutable.check(parseFlags(routerExecutable.flags, argv).values)
    }
  }
  const ensemble = join(ROOT, 'model_repository/ens_face_restoration_v2.1/config.pbtxt')
  const config = parseModelConfig(await readFile(ensemble, 'utf8'), ensemble)
  const steps = config.ensemble_scheduling?.step ?? []
  t.same([...served].toSorted(), steps.map(({ model_name: model }) => model).toSorted())
})

interface Started {
  readonly httpPort: number
  readonly metricsPort: number
  /** Lists what the process logged so far. */
  messages(): readonly { readonly message: string }[]
  /** As SIGTERM does. */
  stop(): Promise<void>
}

/** Everything that a test started, as one process each would be. */
class Processes {
  readonly #t: Test
  readonly #nats: NatsServer

  constructor(t: Test, nats: NatsServer) {
    this.#t = t
    this.#nats = nats
  }

  step(...argv: string[]): Promise<Started> {
    return this.#start(stepExecutable, [REPOSITORY, ...argv])
  }

  router(...argv: string[]): Promise<Started> {
    return this.#start(routerExecutable, [REPOSITORY, ...argv])
  }

  routerOf(repository: string): Promise<Started> {
    return this.#start(routerExecutable, [`--model-repository=${repository}`])
  }

  async #start<T extends FlagTable>(
    executable: Executable<T>,
    argv: readonly string[],
  ): Promise<Started> {
    const loopback = ['grpc', 'http', 'metrics'].flatMap((server) => [
      `--${server}-address=127.0.0.1`,
      `--${server}-port=0`,
    ])
    const given = [`--nats=${this.#nats.url}`, ...loopback, ...argv]
    const { values: flags } = parseFlags(executable.flags, given)
    const lines: string[] = []
    const destination = { write: (line: string) => lines.push(line) }
    const log = createLogger({ level: 'info', name: 'test', destination })
    const health = createHealth()
    const { signal } = new AbortController()
    const settings = loadTracingSettings({})
    const running = await executable.start({ flags, settings, log, health, signal })
    this.#t.teardown(() => running.close())
    health.release('starting')
    const stop = async (): Promise<void> => {
      await running.stopAccepting()
      await running.drain({ signal })
      await running.close()
    }
    const ready = lines.map((line) => JSON.parse(line)).find((l) => l.httpPort !== undefined)
    const messages = () => lines.map((line) => JSON.parse(line))
    const { httpPort, metricsPort } = ready
    return { stop, messages, httpPort: Number(httpPort), metricsPort: Number(metricsPort) }
  }
}

const row = Array.from({ length: 16 }, (_, i) => i)
const request = { inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 16], data: row }] }

async function infer(port: number, model: string): Promise<readonly [number, unknown]> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/infer`, {
    method: 'POST',
    body: JSON.stringify(request),
  })
  const body = JSON.parse(await answer.text())
  return [answer.status, body.outputs?.[0].data ?? body.error]
}

const isReady = async (port: number): Promise<boolean> =>
  (await fetch(`http://127.0.0.1:${port}/v2/health/ready`)).status === 200

const SKIP = { skip: withoutNatsServer() }

await t.test('routers run ensembles over steps that come and go', SKIP, async (t) => {
  const nats = await startNatsServer()
  t.teardown(() => nats.stop())
  const processes = new Processes(t, nats)
  const [a, early] = await Promise.all([
    processes.step('--model=add_one_batch', '--model=add_one', '--model=identity_fp32'),
    processes.router('--strict-readiness=false'),
  ])
  const late = await processes.router('--strict-readiness=false')
  const sum = row.map((x) => x + 2)
  t.same(await infer(late.httpPort, 'ens_chain'), [200, sum], 'the steps were there first')
  await until('it is served', async () => (await infer(early.httpPort, 'ens_chain'))[0] === 200)
  t.same(
    await infer(a.httpPort, 'add_one_batch'),
    await infer(late.httpPort, 'add_one_batch'),
    'asked directly, a step answers the same',
  )
  const announced = (): number =>
    late.messages().filter(({ message }) => message === 'step announced').length
  const before = announced()
  const b = await processes.step('--model=add_one_batch')
  await until('the router knows the other replica', async () => announced() > before)
  await a.stop()
  for (let i = 0; i < 8; i++) {
    t.same(await infer(late.httpPort, 'ens_chain'), [200, sum], 'the other replica takes over')
  }
  await b.stop()
  t.same(await infer(late.httpPort, 'ens_chain'), [
    503,
    "in ensemble 'ens_chain', no replica serves model 'add_one_batch' version 1",
  ])
  await processes.step('--model=add_one_batch')
  await until('it is served', async () => (await infer(late.httpPort, 'ens_chain'))[0] === 200)
  await Promise.all([late.stop(), early.stop()])
})

const differences = (router: Started) =>
  router.messages().filter(({ message }) => message.startsWith('routers have different'))

await t.test('routers with different ensembles of one name say so', SKIP, async (t) => {
  const nats = await startNatsServer()
  t.teardown(() => nats.stop())
  const processes = new Processes(t, nats)
  const io = 'input { name: "X" data_type: TYPE_FP32 dims: 16 }'
  const repository = t.testdir({
    ens_chain: {
      'config.pbtxt': `platform: "ensemble" ${io} ${io.replace('input', 'output').replace('X', 'Y')}
        ensemble_scheduling { step { model_name: "add_one" model_version: -1
          input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`,
      1: {},
    },
  })
  const [one, other] = [await processes.router(), await processes.routerOf(repository)]
  for (const router of [one, other]) {
    await until('a difference is told', async () => differences(router).length > 0)
    t.match(differences(router), [{ level: 'warn', ensemble: 'ens_chain', version: 1 }])
  }
})

// Executes docs/processes.md: tls {
// Executes docs/processes.md: npm run tutti -- router
await t.test('the broker of docs/processes.md keeps its tenants apart', SKIP, async (t) => {
  const folder = t.testdir()
  await createTestCertificates(folder)
  const key = createNatsKey()
  await writeFile(join(folder, 'team-a.password'), 'PASSWORD\n')
  await writeFile(join(folder, 'team-b.nk'), key.seed)
  const page = await readFile(join(ROOT, 'docs/processes.md'), 'utf8')
  const config = /^tls \{\n[\s\S]*?^```$/m.exec(page)?.[0].replace(/```$/, '') ?? ''
  const inFolder = (text: string): string =>
    text.replaceAll(/[\w-]+\.(pem|key|password|nk)\b/g, (file) => join(folder, file))
  const nats = await startNatsServer({
    config: inFolder(config.replace('UPUBLICKEY', key.publicKey)),
  })
  t.teardown(() => nats.stop())
  const processes = new Processes(t, nats)
  const tenants = (await commandsOf('docs/processes.md')).flatMap(({ argv }) =>
    argv.some((flag) => flag.startsWith('--nats-tls-ca'))
      ? [argv.filter((flag) => /^--(nats-|repository-name)/.test(flag)).map(inFolder)]
      : [],
  )
  t.equal(tenants.length, 2)
  const [a = [], b = []] = tenants
  await processes.step('--model=add_one_batch', ...a)
  const [ours, theirs] = [await processes.router(...a), await processes.router(...b)]
  await until('it is served', async () => (await infer(ours.httpPort, 'add_one_batch'))[0] === 200)
  t.equal((await infer(theirs.httpPort, 'add_one_batch'))[0], 404)
  for (const router of [ours, theirs]) {
    t.ok(router.messages().some(({ message }) => message === 'server ready'))
  }
  const intruder = await processes.router(...b.map((flag) => flag.replace('=team-b', '=team-a')))
  await until('the broker has complained', async () =>
    intruder.messages().some(({ message }) => message === 'broker complained'),
  )
  t.not((await infer(intruder.httpPort, 'add_one_batch'))[0], 200)
})

await t.test('repositories and prefixes keep installations apart', SKIP, async (t) => {
  const nats = await startNatsServer()
  t.teardown(() => nats.stop())
  const processes = new Processes(t, nats)
  await processes.step('--model=add_one_batch', '--repository-name=a.b *>')
  const ours = await processes.router('--repository-name=a.b *>')
  const others = await Promise.all([
    processes.router('--repository-name=a'),
    processes.router('--repository-name=a.b *>', '--nats-prefix=other'),
  ])
  t.equal((await infer(ours.httpPort, 'add_one_batch'))[0], 200)
  for (const other of others) {
    t.same(await infer(other.httpPort, 'add_one_batch'), [
      404,
      "Request for unknown model: 'add_one_batch' is not found",
    ])
  }
})

await t.test('the broker may go and come back', SKIP, async (t) => {
  const nats = await startNatsServer()
  t.teardown(() => nats.stop())
  const processes = new Processes(t, nats)
  await processes.step('--model=add_one_batch')
  const router = await processes.router('--strict-readiness=false')
  t.equal((await infer(router.httpPort, 'add_one_batch'))[0], 200)
  const probe = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${router.metricsPort}/readyz`)).text()
  await nats.kill()
  let answered = await infer(router.httpPort, 'add_one_batch')
  while (answered[0] === 200) answered = await infer(router.httpPort, 'add_one_batch')
  t.equal(answered[0], 503)
  t.match(answered[1], /cannot be reached: the broker is away/)
  t.equal(await probe(), 'ok\n', 'its clients are told by it')
  t.equal(await isReady(router.httpPort), true, 'its view of the models stands')
  await nats.restart()
  await until('the probe succeeds', async () => (await probe()) === 'ok\n')
  await until(
    'it is served',
    async () => (await infer(router.httpPort, 'add_one_batch'))[0] === 200,
  )
})
