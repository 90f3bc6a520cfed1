// needs: nats
import type { Engine } from '@tutti/backends'
import {
  createHealth,
  createLogger,
  loadTracingSettings,
  parseFlags,
  type Running,
} from '@tutti/chassis'
import { startNatsServer, until, withoutNatsServer } from '@tutti/chassis/testing'
import { scanRepositories } from '@tutti/repository'
import {
  openRouter,
  ROUTER_FLAGS,
  type Router,
  RouterMember,
  readEnsembles,
  startRouter,
} from '@tutti/router'
import { serveProcess } from '@tutti/server'
import { FLAGS_RULE } from '@tutti/serving'
import { loadStartModels, openModels, STEP_FLAGS, StepMember, startStep } from '@tutti/step'
import t, { type Test } from 'tap'

const IO =
  'input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }'
const plus = (added: number): string =>
  `backend: "plus" ${IO} parameters { key: "plus" value { string_value: "${added}" } }`
const step = (model: string, from: string, to: string): string =>
  `step { model_name: "${model}" model_version: -1 input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`

/** Adds what the configuration of its model says. */
const engine: Engine = {
  backend: 'plus',
  inspect: () => Promise.reject(new Error('everything is declared')),
  load: async ({ config }) => ({
    signature: { inputs: [], outputs: [] },
    execute: async (batch) => {
      const added = Number(config.parameters['plus']?.string_value)
      for (const { request, sink } of batch) {
        const [x] = new Float32Array(Uint8Array.from(request.inputs[0]?.data ?? []).buffer)
        const data = new Uint8Array(Float32Array.of((x ?? Number.NaN) + added).buffer)
        const outputs = [{ name: 'Y', datatype: 'FP32' as const, shape: [1], data }]
        sink.send({ index: 0, final: true, outputs, parameters: new Map() })
      }
      return { computeInputNs: 1, computeInferNs: 1, computeOutputNs: 1 }
    },
    close: async () => {},
  }),
}

/** Makes what a process is started with, and finds the ports that it opened. */
function environment(argv: readonly string[]) {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const port = (name: string): number =>
    lines.map((line) => JSON.parse(line)).find((line) => line.httpPort !== undefined)[name]
  const servers = ['grpc', 'http', 'metrics'].flatMap((server) => [
    `--${server}-address=127.0.0.1`,
    `--${server}-port=0`,
  ])
  const o = {
    log: createLogger({ level: 'info', name: 'test', destination }),
    health: createHealth(),
    settings: loadTracingSettings({}),
    signal: new AbortController().signal,
  }
  const get = async (path: string): Promise<string> =>
    await (await fetch(`http://127.0.0.1:${port('metricsPort')}/${path}`)).text()
  const infer = async (model: string): Promise<unknown> => {
    const inputs = [{ name: 'X', datatype: 'FP32', shape: [1], data: [1] }]
    const url = `http://127.0.0.1:${port('httpPort')}/v2/models/${model}/infer`
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify({ inputs }) })
    const body = JSON.parse(await answer.text())
    return answer.ok ? body.outputs[0].data[0] : body.error
  }
  return { argv: [...servers, ...argv], o, get, infer }
}

/** Starts a process that is a router and a step at once, and on the broker as both. */
async function startBoth(t: Test, argv: readonly string[]) {
  const { o, ...asked } = environment(argv)
  const { values: flags } = parseFlags({ ...ROUTER_FLAGS, ...STEP_FLAGS }, asked.argv)
  let opened: Router | undefined
  const running = await serveProcess({ ...o, flags }, async (shared, openProbes) => {
    const own = { replica: 'step-here', host: 'here' }
    const asStep = new StepMember(shared, { flags, own })
    const asRouter = new RouterMember(shared, { flags, ownStep: own.replica })
    await openProbes({ members: [asStep, asRouter] })
    const { step: models, repository } = openModels(shared, {
      flags,
      log: shared.log,
      engines: [engine],
      replica: own.replica,
      unpinned: async (pin) => {
        await Promise.all([router.whenUnpinned(pin), asStep.whenUnpinned(pin)])
      },
      routers: () => ({ executor: router.nested, ask: router.answer }),
      control: () => FLAGS_RULE,
    })
    const router: Router = openRouter(shared, {
      flags,
      local: models,
      member: asRouter,
      ensembles: await readEnsembles(await scanRepositories(flags['model-repository'])),
      hasHeardSteps: () => asRouter.hasHeardSteps,
      control: () => FLAGS_RULE,
      awaitsSteps: true,
      log: shared.log,
    })
    opened = router
    const others = { directories: [], overrides: new Map() }
    await loadStartModels(flags, { ...shared, step: models, repository, others })
    await asStep.join(models)
    await asRouter.join(router, o)
    return { backend: router, stop: () => router.stop(), models, fields: own }
  })
  t.teardown(() => running.close())
  return { ...asked, running, router: opened }
}

await t.test(
  'a process may be a router and a step at once, and on the broker as both',
  { skip: withoutNatsServer(), timeout: 120_000 },
  async (t) => {
    const nats = await startNatsServer()
    t.teardown(() => nats.stop())
    const folder = t.testdir({
      here: {
        one: { 'config.pbtxt': plus(1), 1: {} },
        both: {
          'config.pbtxt': `platform: "ensemble" ${IO} ensemble_scheduling {
            ${step('one', 'X', 't')} ${step('ten', 't', 'Y')} }`,
          1: {},
        },
      },
      there: { ten: { 'config.pbtxt': plus(10), 1: {} } },
    })
    const at = (name: string): string[] => [
      `--nats=${nats.url}`,
      `--model-repository=${folder}/${name}`,
    ]
    const there = environment(at('there'))
    const { values } = parseFlags(STEP_FLAGS, there.argv)
    const other: Running = await startStep({ ...there.o, flags: values, engines: [engine] })
    t.teardown(() => other.close())
    const here = await startBoth(t, at('here'))

    t.equal(
      await here.infer('both'),
      12,
      'an ensemble of a model of its own and one of another process',
    )
    const replicas = (model: string) =>
      here.router?.replicasOf(new Set([model])).map((one) => [one.replica, one.reachedOver])
    t.same(
      replicas('one'),
      [['step-here', 'this process']],
      'its own models are reached without the broker',
    )
    t.match(replicas('ten'), [[/^step-/, 'nats']])

    const outer = environment([`--nats=${nats.url}`])
    const flags = parseFlags(ROUTER_FLAGS, outer.argv).values
    const router = await startRouter({ ...outer.o, flags })
    t.teardown(() => router.close())
    t.equal(await outer.infer('one'), 2, 'other routers call its models over the broker')

    const text = await here.get('metrics')
    t.equal(text.split('# TYPE tutti_nats_connected').length, 2, 'each family once')
    for (const role of ['router', 'step']) {
      t.match(text, `tutti_nats_connected{member="${role}"} 1\n`)
    }

    await nats.stop()
    await until('both members know that the broker is gone', async () => {
      const scraped = await here.get('metrics')
      return ['router', 'step'].every((role) =>
        scraped.includes(`tutti_nats_connected{member="${role}"} 0\n`),
      )
    })
    t.equal(await here.infer('one'), 2, 'its own models need no broker')
    await here.running.stopAccepting()
    await here.running.drain({ signal: AbortSignal.timeout(30_000) })
  },
)
