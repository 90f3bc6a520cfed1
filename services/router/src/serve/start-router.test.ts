import { readFileSync } from 'node:fs'
import { toDescriptionJson, toStatisticsJson } from '@tutti/api'
import { createHealth, createLogger, loadTracingSettings, parseFlags } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import { InferenceClient } from '@tutti/protocol/client'
import { StatisticsRecorder } from '@tutti/telemetry'
import t, { type Test } from 'tap'
import type { RevisionListener } from '../accepted/accepted-link.ts'
import { type Answer, echoing, modelRevision, ScriptedRouterEndpoint } from '../testing/index.ts'
import { ROUTER_FLAGS } from './router-flags.ts'
import { type StartRouterOptions, startRouter } from './start-router.ts'

const NATS = '--nats=nats://nowhere.invalid:4222'
const IO = `
  input { name: "X" data_type: TYPE_FP32 dims: 2 }
  output { name: "Y" data_type: TYPE_FP32 dims: 2 }`
const ENSEMBLE = `platform: "ensemble" ${IO}
  ensemble_scheduling { step { model_name: "m" model_version: -1
    input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`

/** A repository with one ensemble over `m`, and a model that is the steps' business. */
const repository = (t: Test): string =>
  t.testdir({
    ens: { 'config.pbtxt': ENSEMBLE, 1: {} },
    other: { 'config.pbtxt': `backend: "onnxruntime" ${IO}`, 1: { 'model.onnx': '' } },
  })

interface TraceEvent {
  readonly id: number
  readonly model_name?: string
  readonly parent_id?: number
}

async function start(
  t: Test,
  argv: readonly string[],
  endpoint = new ScriptedRouterEndpoint(),
  o: Pick<StartRouterOptions, 'watch' | 'clock'> = {},
) {
  const loopback = ['grpc', 'http', 'metrics'].flatMap((listener) => [
    `--${listener}-address=127.0.0.1`,
    `--${listener}-port=0`,
  ])
  const { values: flags } = parseFlags(ROUTER_FLAGS, [NATS, ...loopback, ...argv])
  const health = createHealth()
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const signal = new AbortController().signal
  const settings = loadTracingSettings({})
  const openEndpoint = endpoint.open
  const running = await startRouter({ ...o, flags, settings, log, health, signal, openEndpoint })
  t.teardown(() => running.close())
  health.release('starting')
  const messages = () => lines.map((line) => JSON.parse(line))
  const ready = messages().find((line) => line.httpPort !== undefined)
  return { running, endpoint, health, ready, messages }
}

/** Answers as a step that serves `m` under the revision. */
function stepWithM(replica: string, revision: string, inferences = 0): Answer {
  const text = `name: "m" backend: "onnxruntime" ${IO}`
  const config = normaliseModelConfig(parseModelConfig(text, 'config.pbtxt'))
  const versions = [{ version: 1, revision, state: 'READY' as const, reason: '' }]
  const recorder = new StatisticsRecorder({ name: 'm', version: '1' })
  const one = { queueNs: 1, computeInputNs: 1, computeInferNs: 1, computeOutputNs: 1 }
  const times = { ...one, transferNs: 0 }
  for (let i = 0; i < inferences; i++) recorder.ended({ elapsedNs: 10, batchSize: 1, times })
  return async (question) =>
    question === 'describe'
      ? toDescriptionJson({
          replica,
          models: [{ name: 'm', config, labels: {}, versions, reason: '' }],
        })
      : toStatisticsJson([recorder.snapshot()])
}

const get = async (
  port: unknown,
  path: string,
  body?: object,
): Promise<readonly [number, string]> => {
  const post = { method: 'POST', body: JSON.stringify(body) }
  const url = `http://127.0.0.1:${Number(port)}${path}`
  const answer = await fetch(url, body === undefined ? {} : post)
  return [answer.status, await answer.text()]
}

const request = { inputs: [{ name: 'X', datatype: 'FP32', shape: [2], data: [1, 2] }] }

/** Lets what is due run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

await t.test('it serves ensembles of its repository over the steps of the broker', async (t) => {
  const endpoint = new ScriptedRouterEndpoint()
  endpoint.announce('s1', [['m', 1, 'r']], stepWithM('s1', 'r', 2))
  endpoint.announce('s2', [['m', 1, 'r']], stepWithM('s2', 'r', 3))
  endpoint.executors.set('s1', echoing('Y'))
  const argv = [`--model-repository=${repository(t)}`, '--metrics-config=summary_latencies=true']
  const { ready } = await start(t, argv, endpoint)
  for (const model of ['m', 'ens', 'm', 'ens']) {
    const [status, text] = await get(ready.httpPort, `/v2/models/${model}/infer`, request)
    t.equal(status, 200, 'also where the first attempt went to s2, which does not respond')
    t.same(JSON.parse(text).outputs[0].data, [1, 2])
  }
  t.same((await get(ready.httpPort, '/v2/health/ready'))[0], 200)
  const [, statistics] = await get(ready.httpPort, '/v2/models/m/stats')
  t.equal(JSON.parse(statistics).model_stats[0].inference_count, 5, 'over both replicas')
  t.same(
    JSON.parse((await get(ready.httpPort, '/v2/repository/index', {}))[1]).map(
      ({ name }: { name: string }) => name,
    ),
    ['ens', 'm'],
    'models of its own repository are left to the steps',
  )
  const [, metrics] = await get(ready.metricsPort, '/metrics')
  t.match(metrics, /^nv_inference_request_summary_us_count{model="ens",version="1"} 2$/m)
})

await t.test(
  'it traces requests of clients, and the steps of ensembles, into a file',
  async (t) => {
    const endpoint = new ScriptedRouterEndpoint()
    endpoint.announce('s1', [['m', 1, 'r']], stepWithM('s1', 'r'))
    endpoint.executors.set('s1', echoing('Y'))
    const folder = t.testdir({ models: { ens: { 'config.pbtxt': ENSEMBLE, 1: {} } } })
    const words = ['rate=1', 'level=TIMESTAMPS', 'triton,log-frequency=1']
    const argv = [...words, `triton,file=${folder}/trace`].map((text) => `--trace-config=${text}`)
    const { ready } = await start(t, [`--model-repository=${folder}/models`, ...argv], endpoint)
    for (const name of ['ens', 'm'])
      t.equal((await get(ready.httpPort, `/v2/models/${name}/infer`, request))[0], 200)
    const tracesOf = (index: number) =>
      JSON.parse(readFileSync(`${folder}/trace.${index}`, 'utf8')).flatMap(
        ({ id, model_name: name, parent_id: parent }: TraceEvent) =>
          name === undefined ? [] : `${id} ${name} ${parent ?? '-'}`,
      )
    t.same(tracesOf(0), ['2 m 1', '1 ens -'])
    t.same(tracesOf(1), ['3 m -'])
    t.match(await get(ready.httpPort, '/v2/trace/setting'), [200, /"trace_rate":"1"/])
    const [status, text] = await get(ready.httpPort, '/v2/trace/setting', { trace_rate: '2' })
    t.match([status, text], [501, /trace settings of routers and steps are those of their flags/])
  },
)

await t.test('without steps it is up, and reports what it waits for', async (t) => {
  const { endpoint, ready, messages } = await start(t, [`--model-repository=${repository(t)}`])
  t.same(await get(ready.metricsPort, '/readyz'), [200, 'ok\n'], 'the process is ready')
  t.equal((await get(ready.httpPort, '/v2/health/ready'))[0], 400, 'its models are not')
  t.match(messages(), [{ level: 'info', message: 'ensemble waits for models', model: 'ens' }])
  const answer = Promise.withResolvers<unknown>()
  endpoint.announce('s1', [['m', 1, 'r']], () => answer.promise)
  t.same(await get(ready.metricsPort, '/readyz'), [200, 'ok\n'], 'nor a step that comes later')
  answer.resolve(await stepWithM('s1', 'r')('describe', null))
  await settle()
  t.same(await get(ready.metricsPort, '/readyz'), [200, 'ok\n'])
  t.equal((await get(ready.httpPort, '/v2/health/ready'))[0], 200)
  endpoint.remove('s1')
  t.equal((await get(ready.httpPort, '/v2/health/ready'))[0], 400)
  t.same(await get(ready.httpPort, '/v2/models/ens/infer', request), [
    503,
    '{"error":"in ensemble \'ens\', no replica serves model \'m\' version 1"}',
  ])
  endpoint.isConnected = false
  t.same(await get(ready.metricsPort, '/readyz'), [503, 'the broker is not connected\n'])
  t.equal((await get(ready.metricsPort, '/livez'))[0], 200)
})

await t.test('a router that lost the broker before it knew the steps is not ready', async (t) => {
  const endpoint = new ScriptedRouterEndpoint()
  endpoint.isConnected = false
  const { ready } = await start(t, [], endpoint)
  endpoint.awayForMs = 0
  t.same(await get(ready.metricsPort, '/readyz'), [503, 'the steps have not been heard yet\n'])
})

await t.test('a broker that is lost for a moment leaves the router its clients', async (t) => {
  const { endpoint, ready } = await start(t, [])
  endpoint.isConnected = false
  for (const [awayMs, isReady] of [
    [0, true],
    [30_000, true],
    [30_001, false],
  ] as const) {
    endpoint.awayForMs = awayMs
    const [status] = await get(ready.metricsPort, '/readyz')
    t.equal(status === 200, isReady, `after ${awayMs} ms`)
  }
})

await t.test('a router that reaches all models without the broker stays ready', async (t) => {
  const endpoint = new ScriptedRouterEndpoint()
  endpoint.announce('s1', [['m', 1, 'r']], stepWithM('s1', 'r'))
  endpoint.announce('s2', [['m', 1, 'r']], stepWithM('s2', 'r'))
  endpoint.announce('s3', [['m', 2, 'q']], stepWithM('s3', 'q'))
  const { ready } = await start(t, [], endpoint)
  endpoint.isConnected = false
  endpoint.awayForMs = 30_001
  for (const [direct, status] of [
    [['s1', 's2', 's3'], 200],
    [['s2', 's3'], 200],
    [['s1', 's2'], 503],
    [['s3'], 503],
    [[], 503],
  ] as const) {
    endpoint.direct = direct
    t.equal((await get(ready.metricsPort, '/readyz'))[0], status, `over ${direct.join(', ')}`)
  }
})

await t.test('an ensemble that waits for a step is not unknown, over gRPC and REST', async (t) => {
  const { endpoint, ready } = await start(t, [`--model-repository=${repository(t)}`])
  const client = new InferenceClient({ address: `127.0.0.1:${ready.grpcPort}` })
  t.teardown(() => client.close())
  const infer = (modelName: string): Promise<unknown> =>
    client.infer({ modelName, inputs: [] }).catch((error: unknown) => error)
  const waits =
    "Request for unknown model: 'ens' is not found: ensemble 'ens' waits for a step that serves 'm'"
  t.same(await get(ready.httpPort, '/v2/models/ens/infer', request), [
    503,
    JSON.stringify({ error: waits }),
  ])
  t.equal((await get(ready.httpPort, '/v2/models/ens/ready'))[0], 400)
  t.match(await infer('ens'), { code: 'UNAVAILABLE', reason: 'STEP_UNAVAILABLE', message: waits })
  t.match(await infer('other'), { code: 'NOT_FOUND', reason: 'MODEL_NOT_FOUND' })
  endpoint.announce('s1', [['m', 1, 'r']], stepWithM('s1', 'r'))
  while ((await get(ready.httpPort, '/v2/models/ens/ready'))[0] !== 200) await settle()
  endpoint.remove('s1')
  t.match(await infer('ens'), {
    code: 'UNAVAILABLE',
    reason: 'STEP_UNAVAILABLE',
    message: "in ensemble 'ens', no replica serves model 'm' version 1",
  })
})

await t.test('a router that does not know the steps yet calls no model unknown', async (t) => {
  const endpoint = new ScriptedRouterEndpoint()
  endpoint.isConnected = false
  const { ready, messages } = await start(t, [`--model-repository=${repository(t)}`], endpoint)
  const causes = ['the broker is not connected']
  t.match(ready, { level: 'warn', message: 'listening, not ready yet', causes })
  const away = [503, 'the broker is not connected\n']
  t.same(await get(ready.metricsPort, '/readyz'), away)
  for (const model of ['m', 'ens']) {
    t.same(await get(ready.httpPort, `/v2/models/${model}/infer`, request), [
      503,
      `{"error":"model '${model}' is not known yet: this router has not heard the steps"}`,
    ])
    t.equal((await get(ready.httpPort, `/v2/models/${model}/ready`))[0], 400)
  }
  endpoint.isConnected = true
  const unheard = [503, 'the steps have not been heard yet\n']
  let last = await get(ready.metricsPort, '/readyz')
  t.same(last, unheard)
  while (last[0] === 503) last = await get(ready.metricsPort, '/readyz')
  t.equal((await get(ready.httpPort, '/v2/models/m/infer', request))[0], 404, 'now it knows')
  const isServing = () => messages().some(({ message }) => message === 'server ready')
  while (!isServing()) await settle()
})

await t.test('what only steps of another version serve is refused with its reason', async (t) => {
  const endpoint = new ScriptedRouterEndpoint()
  const { ready } = await start(t, [`--model-repository=${repository(t)}`], endpoint)
  const infer = (model: string) => get(ready.httpPort, `/v2/models/${model}/infer`, request)
  t.notMatch(await get(ready.metricsPort, '/tutti/v1/served'), [200, /foreign/])
  t.equal((await infer('m'))[0], 404)
  const later = { member: 'later', role: 'step', oldestProtocol: 2, newestProtocol: 3 } as const
  endpoint.foreign = [{ ...later, models: ['m'] }]
  const why = "step 'later' speaks protocol version 2 to 3, this router 1"
  for (const model of ['m', 'ens']) {
    const [status, text] = await infer(model)
    t.equal(status, 503)
    t.ok(text.includes(why), text)
  }
  t.equal((await infer('other'))[0], 404, 'of what it does not serve nothing is said')
  const [, served] = await get(ready.metricsPort, '/tutti/v1/served')
  t.match(JSON.parse(served), { models: [], foreign: [{ member: 'later', models: ['m'] }] })
  t.same(await get(ready.metricsPort, '/readyz'), [200, 'ok\n'], 'everything else goes on')
  endpoint.announce('s1', [['m', 1, 'r']], stepWithM('s1', 'r'))
  endpoint.executors.set('s1', echoing('Y'))
  while ((await get(ready.httpPort, '/v2/models/ens/ready'))[0] !== 200) await settle()
  t.equal((await infer('m'))[0], 200)
  endpoint.remove('s1')
  const [status, text] = await infer('ens')
  t.equal(status, 503)
  t.ok(text.includes(why), text)
})

await t.test('clients load and unload nothing over processes', async (t) => {
  const endpoint = new ScriptedRouterEndpoint()
  endpoint.announce('s1', [['m', 1, 'r']], stepWithM('s1', 'r'))
  const { ready } = await start(t, [`--model-repository=${repository(t)}`], endpoint)
  for (const verb of ['load', 'unload']) {
    const text = `explicit model load / unload is not allowed: the flags of steps and routers rule what is loaded, on Kubernetes the Model resource; change these, or run with --model-control-mode=poll`
    const path = `/v2/repository/models/m/${verb}`
    t.same(await get(ready.httpPort, path, {}), [503, JSON.stringify({ error: text })])
  }
  const [, index] = await get(ready.httpPort, '/v2/repository/index', {})
  t.match(JSON.parse(index), [
    { name: 'ens', state: 'READY' },
    { name: 'm', state: 'READY' },
  ])
})

await t.test('without strict readiness it is ready as soon as it serves', async (t) => {
  const argv = [`--model-repository=${repository(t)}`, '--strict-readiness=false']
  const { ready } = await start(t, argv)
  t.equal((await get(ready.httpPort, '/v2/health/ready'))[0], 200)
})

await t.test('a step that answers nonsense is asked again and harms no other', async (t) => {
  const endpoint = new ScriptedRouterEndpoint()
  const good = stepWithM('s1', 'r')
  let asked = 0
  endpoint.announce('s1', [['m', 1, 'r']], async (question, argument) => {
    asked += 1
    if (asked === 1) return { replica: 's1', models: 'many' }
    if (asked === 2) return stepWithM('someone else', 'r')(question, argument)
    return good(question, argument)
  })
  const { ready, messages } = await start(t, [], endpoint)
  t.equal((await get(ready.httpPort, '/v2/models/m/ready'))[0], 200)
  const failed = messages().filter((line) => line.message === 'step did not describe itself')
  t.match(failed, [
    { replica: 's1', reason: 'MALFORMED_MESSAGE', error: /models/ },
    { reason: 'MALFORMED_MESSAGE', error: /got replica "someone else", want "s1"/ },
  ])
})

await t.test(
  'on Kubernetes it serves what was accepted, and is ready once it knows that',
  async (t) => {
    const endpoint = new ScriptedRouterEndpoint()
    const asked: string[] = []
    let hearer: RevisionListener | undefined
    const { running, ready } = await start(t, ['--kubernetes'], endpoint, {
      watch: (heard) => {
        hearer = heard
        return { close: async () => void asked.push('closed') }
      },
    })
    endpoint.announce('s1', [['m', 1, 'r']], stepWithM('s1', 'r'))
    await settle()
    const unheard = 'the steps have not been heard yet'
    const unread = 'the accepted revisions have not been read yet'
    t.same(await get(ready.metricsPort, '/readyz'), [503, `${unheard}\n${unread}\n`])
    t.equal((await get(ready.httpPort, '/v2/models/m/infer', request))[0], 503)
    const config = `backend: "onnxruntime" ${IO}`
    const object = modelRevision({ name: 'm-1', model: 'm', config, versions: { 1: 'r' } })
    hearer?.onEvent({ type: 'added', object })
    hearer?.onSynced()
    while ((await get(ready.metricsPort, '/readyz'))[0] !== 200) await settle()
    t.same(JSON.parse((await get(ready.metricsPort, '/tutti/v1/served'))[1]), {
      models: [{ name: 'm', versions: [{ version: 1, revisions: ['r'] }] }],
      accepted: ['m-1'],
    })
    t.equal((await get(ready.httpPort, '/v2/models/m/ready'))[0], 200)
    t.equal((await get(ready.httpPort, '/v2/models/other/infer', request))[0], 404)
    for (const verb of ['load', 'unload']) {
      const [status, text] = await get(ready.httpPort, `/v2/repository/models/m/${verb}`, {})
      t.equal(status, 503)
      t.match(text, `explicit model load / unload is not allowed: on Kubernetes the Model resource`)
    }
    await running.close()
    t.same(asked, ['closed'])
  },
)

/** Models m and n were accepted. */
const watchTwo: StartRouterOptions['watch'] = ({ onEvent, onSynced }) => {
  for (const model of ['m', 'n']) {
    const config = `backend: "onnxruntime" ${IO}`
    const object = modelRevision({ name: `${model}-1`, model, config, versions: { 1: 'r' } })
    onEvent({ type: 'added', object })
  }
  setImmediate(onSynced)
  return { close: async () => {} }
}

await t.test(
  'on Kubernetes a new router waits for a slow step of what was accepted, but not for ever',
  async (t) => {
    const clock = createManualClock()
    const endpoint = new ScriptedRouterEndpoint()
    endpoint.announce('s1', [['m', 1, 'r']], stepWithM('s1', 'r'))
    const starting = start(t, ['--kubernetes'], endpoint, {
      watch: watchTwo,
      clock,
    })
    /** Since the router has joined. */
    let now = 0
    const passUntil = async (ms: number): Promise<void> => {
      for (; now < ms; now += 20) {
        await settle()
        clock.advance(20)
      }
      await settle()
    }
    while (endpoint.events.length === 0) await settle()
    await passUntil(640)
    const { ready } = await starting
    const unheard = [503, 'the steps have not been heard yet\n']
    t.same(await get(ready.metricsPort, '/readyz'), unheard, 'no step of n was heard')
    await passUntil(2960)
    t.same(await get(ready.metricsPort, '/readyz'), unheard)
    await passUntil(3060)
    t.same(await get(ready.metricsPort, '/readyz'), [200, 'ok\n'], 'there is none')
  },
)

await t.test('without a cluster it does not start with --kubernetes', async (t) => {
  const failed = await start(t, ['--kubernetes']).catch((error: unknown) => error)
  t.match(failed, { reason: 'SETTING_INVALID', message: /--kubernetes: KUBERNETES_SERVICE_HOST/ })
})

await t.test('it stops in order, and frees what it opened when the start fails', async (t) => {
  const first = await start(t, [])
  const endpoint = new ScriptedRouterEndpoint()
  const taken = await start(t, [`--http-port=${first.ready.httpPort}`], endpoint).catch(
    (error: unknown) => error,
  )
  t.match(taken, { message: /^--http-port: cannot listen/ })
  t.same(endpoint.events, ['joined', 'left'])
  await first.running.stopAccepting()
  await first.running.drain({ signal: new AbortController().signal })
  t.same(first.endpoint.events, ['joined', 'drained'])
  await first.running.close()
  t.same(first.endpoint.events, ['joined', 'drained', 'left'])
})
