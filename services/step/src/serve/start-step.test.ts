import { join } from 'node:path'
import { parseDescriptionJson, parseStatisticsJson } from '@tutti/api'
import t, { type Test } from 'tap'
import { ScriptedEngine, ScriptedStepEndpoint } from '../testing/index.ts'
import { startTestStep } from '../testing/start-test-step.ts'

const FIXTURES = join(import.meta.dirname, '../../../../model_repository/.variants/fixtures')
const BASIC = join(FIXTURES, 'basic')

const start = (t: Test, argv: readonly string[], member = new ScriptedStepEndpoint()) =>
  startTestStep(t, argv, { member })

const DECOUPLED = `backend: "scripted" model_transaction_policy { decoupled: true }
  input { name: "x" data_type: TYPE_UINT8 dims: 1 }
  output { name: "y" data_type: TYPE_UINT8 dims: 1 }
  model_metrics { metric_control {
    metric_identifier { family: "nv_inference_first_response_histogram_ms" }
    histogram_options { buckets: 7 } } }`

/** Returns the error that a promise was rejected with. */
const rejection = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('expected a rejection')
}

const get = async (
  port: number,
  path: string,
  body?: object,
): Promise<readonly [number, string]> => {
  const post = { method: 'POST', body: JSON.stringify(body) }
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, body === undefined ? {} : post)
  return [answer.status, await answer.text()]
}

const row = Array.from({ length: 16 }, (_, i) => i)
const request = { inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 16], data: row }] }

await t.test('clients can talk to a step directly', async (t) => {
  const { ready } = await start(t, [`--model-repository=${BASIC}`, '--model=add_one_batch'])
  const port = Number(ready.httpPort)
  const [status, text] = await get(port, '/v2/models/add_one_batch/infer', request)
  t.equal(status, 200)
  t.same(
    JSON.parse(text).outputs[0].data,
    row.map((x) => x + 1),
  )
  t.same((await get(port, '/v2/health/ready'))[0], 200)
  t.match(JSON.parse((await get(port, '/v2/models/add_one_batch'))[1]), {
    name: 'add_one_batch',
    versions: ['1'],
    platform: 'onnxruntime_onnx',
  })
  t.match(JSON.parse((await get(port, '/v2/models/stats'))[1]), {
    model_stats: [{ name: 'add_one_batch', inference_count: 1 }],
  })
  t.same(JSON.parse((await get(port, '/v2/repository/index', {}))[1]), [
    { name: 'add_one_batch', version: '1', state: 'READY' },
  ])
  t.same(await get(port, '/v2/models/slow/infer', request), [
    404,
    '{"error":"Request for unknown model: \'slow\' is not found"}',
  ])
  const wrong = { inputs: [{ ...request.inputs[0], shape: [4, 4] }] }
  const [refused, why] = await get(port, '/v2/models/add_one_batch/infer', wrong)
  t.equal(refused, 400)
  t.match(JSON.parse(why).error, /unexpected shape for input 'X' for model 'add_one_batch'/)
})

await t.test('its metrics have the latencies that a flag asks for', async (t) => {
  const engine = new ScriptedEngine()
  engine.isImmediate = true
  const repository = t.testdir({ m: { 'config.pbtxt': DECOUPLED, 1: {} } })
  const argv = [`--model-repository=${repository}`]
  for (const text of ['histogram_latencies=true', 'summary_latencies=true'])
    argv.push(`--metrics-config=${text}`)
  const { ready } = await startTestStep(t, argv, { engines: [engine] })
  const body = { inputs: [{ name: 'x', datatype: 'UINT8', shape: [1], data: [1] }] }
  await get(Number(ready.httpPort), '/v2/models/m/infer', body)
  const [, metrics] = await get(Number(ready.metricsPort), '/metrics')
  t.match(
    metrics,
    /^nv_inference_first_response_histogram_ms_bucket{model="m",version="1",le="7"} \d/m,
  )
  t.match(metrics, /^nv_inference_request_summary_us_count{model="m",version="1"} \d/m)
})

await t.test('its engines have the host policies of the flags', async (t) => {
  const argv = [`--model-repository=${BASIC}`, '--model=add_one_batch']
  const isTold = async (...flags: readonly string[]) =>
    (await start(t, [...argv, ...flags])).lines.some((line) =>
      line.includes('instance_group.host_policy'),
    )
  t.equal(await isTold(), false)
  t.equal(await isTold('--host-policy=cpu,cpu-cores=0-0'), true, 'ONNX models cannot have one')
})

/** Writes the config of an ensemble whose steps run these. */
function ensemble(...models: readonly string[]): string {
  const steps = models.map((one) => `step { model_name: "${one}" }`).join(' ')
  return `platform: "ensemble" ensemble_scheduling { ${steps} }`
}

const folder = (config: string) => ({ 'config.pbtxt': config, 1: {} })

await t.test('it serves the models of an ensemble, and of those that it runs', async (t) => {
  const model = 'backend: "scripted"'
  const repository = t.testdir({
    faces: folder(ensemble('find', 'read')),
    read: folder(ensemble('crop', 'find', 'read')),
    find: folder(model),
    crop: folder(model),
    other: folder(model),
  })
  const serve = async (...flags: readonly string[]): Promise<readonly string[]> => {
    const argv = [`--model-repository=${repository}`, ...flags]
    const member = new ScriptedStepEndpoint()
    await startTestStep(t, argv, { member, engines: [new ScriptedEngine()] })
    return parseDescriptionJson(member.options.describe()).models.map(({ name }) => name)
  }
  t.same(await serve('--ensemble=faces'), ['crop', 'find'])
  t.same(await serve('--ensemble=read', '--model=other'), ['crop', 'find', 'other'])
  t.match(await rejection(serve('--ensemble=find')), {
    reason: 'FLAG_INVALID',
    message: /--ensemble.*"find" is a model; want an ensemble/,
  })
  t.match(await rejection(serve('--ensemble=gone')), {
    message: /--ensemble.*"gone" is in no repo/,
  })
})

await t.test('it says over the broker what it serves', async (t) => {
  const { member, ready } = await start(t, [
    `--model-repository=${BASIC}`,
    '--model=add_one',
    '--model=versioned',
    '--repository-name=faces',
  ])
  const { options } = member
  t.equal(options.member, ready.replica)
  t.match(options.broker, { prefix: 'tutti', repository: 'faces' })
  t.same(
    options.revisions().map(([model, version]) => [model, version]),
    [
      ['add_one', 1],
      ['versioned', 1],
      ['versioned', 3],
      ['/parts', 1],
    ],
    'and that it runs parts of graphs with two of them',
  )
  for (const [, , revision] of options.revisions().slice(0, 3)) t.match(revision, /^[0-9a-f]{64}$/)
  t.match(options.load(), { inFlight: 0, queued: 0, freeSlots: Number })
  const description = parseDescriptionJson(options.describe())
  t.equal(description.replica, ready.replica)
  t.same(
    description.models.map(({ name }) => name),
    ['add_one', 'versioned'],
  )
  const all = parseStatisticsJson(await options.answer('statistics', null))
  t.equal(all.length, 3)
  const one = { model: 'versioned', version: '3' }
  const some = parseStatisticsJson(await options.answer('statistics', one))
  t.match(some, [{ name: 'versioned', version: '3' }])
  for (const odd of ['x', { model: 7 }, { version: [] }]) {
    const refused = options.answer('statistics', odd)
    t.match(await rejection(refused), { reason: 'MALFORMED_MESSAGE' })
  }
  t.equal(await options.answer('ready', one), true)
  t.equal(await options.answer('ready', { model: 'missing', version: '1' }), false)
  t.match(await rejection(options.answer('unpinned', one)), { reason: 'UNSUPPORTED' })
})

await t.test('clients load and unload nothing at a step', async (t) => {
  const { ready } = await start(t, [`--model-repository=${BASIC}`, '--model=add_one'])
  const port = Number(ready.httpPort)
  for (const verb of ['load', 'unload']) {
    const [status, text] = await get(port, `/v2/repository/models/add_one/${verb}`, {})
    t.equal(status, 503)
    t.match(text, `explicit model load / unload is not allowed: the flags of steps and routers`)
  }
  t.match(JSON.parse((await get(port, '/v2/repository/index', {}))[1]), [{ state: 'READY' }])
  const explicit = start(t, [`--model-repository=${BASIC}`, '--model-control-mode=explicit'])
  t.match(await rejection(explicit), { message: /"explicit", want one of none, poll/ })
})

await t.test('it is ready when it is on the broker, and says what is missing', async (t) => {
  const { member, health, ready } = await start(t, [
    `--model-repository=${BASIC}`,
    '--model=add_one',
  ])
  const port = Number(ready.metricsPort)
  t.same(await get(port, '/readyz'), [200, 'ok\n'])
  member.isConnected = false
  t.same(await get(port, '/readyz'), [503, 'the broker is not connected\n'])
  member.isConnected = true
  member.obstaclesBeside = ['heartbeat of 5000 model versions: too many']
  t.same(await get(port, '/readyz'), [503, 'heartbeat of 5000 model versions: too many\n'])
  t.same(await get(port, '/livez'), [200, 'ok\n'])
  t.equal((await get(Number(ready.httpPort), '/v2/health/ready'))[0], 200, 'the models are ready')
  health.die('closing')
  t.equal((await get(port, '/livez'))[0], 503)
})

await t.test('it stops in order: told, finished, left', async (t) => {
  const { running, member, ready } = await start(t, [
    `--model-repository=${BASIC}`,
    '--model=add_one',
  ])
  await running.stopAccepting()
  t.same(member.events, ['joined'])
  const drained = running.drain({ signal: new AbortController().signal })
  t.same(member.events, ['joined', 'draining'])
  const port = Number(ready.metricsPort)
  t.equal((await get(port, '/metrics'))[0], 200, 'metrics are there to the end')
  member.drained.resolve()
  await drained
  t.same(member.events, ['joined', 'draining', 'drained'])
  await running.close()
  t.same(member.events, ['joined', 'draining', 'drained', 'left'])
  await t.rejects(get(port, '/livez'))
})

await t.test('what is not understood is refused before anything opens', async (t) => {
  const repository = `--model-repository=${BASIC}`
  const cases: [readonly string[], object][] = [
    [
      [repository, '--model=missing'],
      { reason: 'FLAG_INVALID', message: /^--model: "missing" is in no repository; there are / },
    ],
    [
      [repository, '--model=ens_chain'],
      { reason: 'FLAG_INVALID', message: /^--model: "ens_chain" is an ensemble, which a router/ },
    ],
    [[repository, '--nats=x'], { reason: 'FLAG_INVALID', message: /^--nats: "x"/ }],
    [[repository, '--host-policy=x'], { reason: 'FLAG_INVALID', message: /^--host-policy: / }],
    [
      [repository, '--metrics-config=x'],
      { reason: 'FLAG_INVALID', message: /^--metrics-config: / },
    ],
    [[repository, '--backend-config=x'], { reason: 'FLAG_INVALID', message: /--backend-config/ }],
    [
      [`--model-repository=${FIXTURES}/broken`, '--model=truncated_onnx', '--exit-on-error'],
      {
        reason: 'MODEL_LOAD_FAILED',
        message: /^failed to load all models: truncated_onnx: load failed for model /,
      },
    ],
  ]
  for (const [argv, wanted] of cases) {
    const member = new ScriptedStepEndpoint()
    t.match(await rejection(start(t, argv, member)), wanted, argv.join(' '))
    t.same(member.events, [])
  }
})

await t.test('what was opened is closed if the start fails later', async (t) => {
  const first = await start(t, [`--model-repository=${BASIC}`, '--model=add_one'])
  const member = new ScriptedStepEndpoint()
  const taken = `--http-port=${first.ready.httpPort}`
  const argv = [`--model-repository=${BASIC}`, '--model=add_one', taken]
  t.match(await rejection(start(t, argv, member)), { message: /^--http-port: cannot listen/ })
  t.same(member.events, ['joined', 'left'])
})

await t.test('a broken model is listed and does not keep others from serving', async (t) => {
  const { ready } = await start(t, [
    `--model-repository=${FIXTURES}/broken`,
    '--model=good',
    '--model=syntax_error',
  ])
  const port = Number(ready.httpPort)
  const index = JSON.parse((await get(port, '/v2/repository/index', {}))[1])
  t.match(index, [
    { name: 'good', version: '1', state: 'READY' },
    { name: 'syntax_error', state: 'UNAVAILABLE', reason: /line 7, column 15/ },
  ])
  t.equal((await get(port, '/v2/models/syntax_error/ready'))[0], 400)
})
