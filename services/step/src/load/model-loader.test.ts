import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { ServerMetrics } from '@tutti/telemetry'
import t from 'tap'
import {
  LOADER_CONFIG as CONFIG,
  LOADER_JSON_CONFIG as JSON_CONFIG,
  openLoaderRig as open,
  revisionOf,
  sendPinned as send,
  sentPinned as sent,
  statesOf as states,
  untilSo as until,
} from '../testing/loader-rig.ts'

await t.test('a model is LOADING, READY, UNLOADING while it drains, and unloaded', async (t) => {
  const { step, engine, states } = await open(t, { m: { 1: { f: 'a' } } })
  const gate = Promise.withResolvers<void>()
  engine.beforeLoad = () => gate.promise
  t.same(states(), [])
  const loaded = step.models.load('m')
  await until(() => states().length > 0)
  t.same(states(), ['1: LOADING'])
  gate.resolve()
  await loaded
  t.same(states(), ['1: READY'])
  engine.model('m/1').isImmediate = false
  const accepted = send(step, revisionOf(step))
  await engine.model('m/1').begun(1)
  step.models.unload('m')
  t.same(states(), ['1: UNLOADING'])
  t.equal(engine.model('m/1').isClosed, false)
  engine.model('m/1').at(0).finish()
  await accepted.done
  t.equal(accepted.sink.outcome, 'OK')
  await until(() => engine.model('m/1').isClosed)
  await until(() => states()[0] !== '1: UNLOADING')
  t.same(states(), ['1: UNAVAILABLE unloaded'])
  step.models.unload('m')
  step.models.unload('missing')
  t.same(states(), ['1: UNAVAILABLE unloaded'])
})

await t.test(
  'what is served serves until its successor is READY, then until it is unpinned',
  async (t) => {
    const unpinned = Promise.withResolvers<void>()
    const { step, engine, write } = await open(
      t,
      { m: { 1: { f: 'a' } } },
      { unpinned: () => unpinned.promise },
    )
    await step.models.load('m')
    const old = engine.model('m/1')
    const revision = revisionOf(step)
    await write('m/1/f', 'b')
    const gate = Promise.withResolvers<void>()
    engine.beforeLoad = () => gate.promise
    const loaded = step.models.load('m')
    await new Promise(setImmediate)
    t.equal(revisionOf(step), revision)
    t.equal(await sent(step, revision), 'OK')
    gate.resolve()
    await loaded
    const now = revisionOf(step)
    t.not(now, revision)
    t.same(step.retired(), [['m', 1, revision]])
    t.equal(await sent(step, revision), 'OK', 'a later step of a request that pinned it')
    t.equal(old.executions.length, 2)
    t.equal(await sent(step, now), 'OK')
    t.equal(old.isClosed, false)
    unpinned.resolve()
    await until(() => old.isClosed)
    t.same(step.retired(), [])
    t.match(await sent(step, revision), /^UNAVAILABLE REVISION_GONE/)
  },
)

await t.test('a revision that comes back takes over the requests that pinned it', async (t) => {
  const { step, engine, write } = await open(
    t,
    { m: { 1: { f: 'a' } } },
    { unpinned: () => new Promise(() => {}) },
  )
  const instances = []
  for (const contents of ['a', 'b', 'a']) {
    await write('m/1/f', contents)
    await step.models.load('m')
    instances.push(engine.model('m/1'))
  }
  const [first, second, third] = instances
  await until(() => first?.isClosed === true)
  t.equal(await sent(step, revisionOf(step)), 'OK')
  t.equal(third?.executions.length, 1)
  t.equal(second?.isClosed, false, 'requests may still ask for it')
  await step.close()
  t.equal(second?.isClosed, true)
})

await t.test('a load ends with the time of its Model, and says which field that is', async (t) => {
  const clock = createManualClock()
  const loadLimits = new Map([['m', 90_000]])
  const { step, engine, states } = await open(
    t,
    { m: { 1: { f: 'a' } }, other: { 1: { f: 'a' } } },
    { clock, loadLimits },
  )
  const begun = Promise.withResolvers<void>()
  engine.beforeLoad = (key, _, { signal }) => {
    if (key !== 'm/1') return Promise.resolve()
    begun.resolve()
    return new Promise((_, reject) => {
      signal?.addEventListener('abort', () => reject(ServeError.from(signal.reason)))
    })
  }
  const loading = step.models.load('m')
  await begun.promise
  clock.advance(89_999)
  await step.models.load('other')
  t.equal(engine.options.get('other/1')?.restartMs, undefined)
  t.same(states()[0], '1: LOADING')
  clock.advance(1)
  await t.rejects(loading, { message: /the model was not loaded after 90 s \(timeouts.load\);/ })
  t.match(
    states()[0],
    /^1: UNAVAILABLE \w+: the model was not loaded after 90 s \(timeouts.load\)$/,
  )
  engine.beforeLoad = () => Promise.resolve()
  await step.models.load('m')
  t.equal(engine.options.get('m/1')?.restartMs, 90_000)
})

await t.test('a failed reload leaves what is served, and is tried again', async (t) => {
  const { step, engine, write, states } = await open(t, { m: { 1: { f: 'a' }, 2: { f: 'a' } } })
  await step.models.load('m')
  const loaded = engine.model('m/1')
  await write('m/1/f', 'b')
  engine.failures.set('m/2', new ServeError('MODEL_LOAD_FAILED', 'bad'))
  for (let i = 0; i < 2; i++) {
    await t.rejects(step.models.load('m'), {
      code: 'INVALID_ARGUMENT',
      message: "load failed for model 'm': version 2 is at UNAVAILABLE state: Internal: bad;\n",
    })
    t.same(states(), ['1: READY', '2: READY'])
    t.equal(engine.model('m/1').isClosed, true, 'what was loaded beside it is released')
    t.equal(loaded.isClosed, false)
  }
  await write('m/config.pbtxt', 'nonsense')
  await t.rejects(step.models.load('m'), {
    code: 'INTERNAL',
    message: /^failed to load 'm', failed to poll from model repository: failed to read text proto/,
  })
  t.same(states(), ['1: READY', '2: READY'])
  t.equal(step.models.failures, 3, 'each is counted')
})

await t.test('a load that changes nothing loads nothing', async (t) => {
  const { step, engine, write } = await open(t, { m: { 1: { f: 'a' } } })
  const [one, two] = [step.models.load('m'), step.models.load('m')]
  await Promise.all([one, two])
  const loaded = engine.model('m/1')
  await write('m/1/f', 'a')
  await step.models.load('m')
  t.equal(engine.model('m/1'), loaded)
  step.models.unload('m')
  await step.models.load('m')
  t.not(engine.model('m/1'), loaded, 'after an unload it is loaded anew')
})

await t.test('what an engine says of a model file is a failure of the versions', async (t) => {
  const { step, write, states } = await open(t, { m: { 1: { f: 'a' }, 2: { f: 'a' } } })
  const incomplete = 'backend: "scripted" version_policy { all { } } default_model_filename: '
  await write('m/config.pbtxt', `${incomplete}"f"`)
  const message =
    /^load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: no model in .*f;version 2 is at .*f;\n$/
  await t.rejects(step.models.load('m'), { code: 'INVALID_ARGUMENT', message })
  t.match(states(), [/^1: UNAVAILABLE Internal: no model in/, /^2: UNAVAILABLE Internal: no model/])
  await write('m/config.pbtxt', `${incomplete}"../f"`)
  await t.rejects(step.models.load('m'), { message: /version 1 is .* state: Invalid argument: / })
  const output = 'output { name: "z" data_type: TYPE_FP32 dims: [ 1 ] label_filename: "absent" }'
  await write('m/config.pbtxt', `${CONFIG} ${output}`)
  await t.rejects(step.models.load('m'), { message: /Internal: failed to open text file/ })
  t.match(states(), [/^1: UNAVAILABLE Internal: failed to open/, /^2: /])
  await t.rejects(step.models.load('m', { config: '{"platform":"nope"}', files: new Map() }))
  t.match(states(), [/^1: UNAVAILABLE Internal: failed to open/, /^2: /], 'as before that override')
})

await t.test('a configuration of a load request stays while the files do', async (t) => {
  const { step, write } = await open(t, { m: { 1: { f: 'a' } } })
  const batches = (): number | undefined => step.served()[0]?.config?.max_batch_size
  const override = async (size: number): Promise<void> => {
    const config = JSON.stringify({ ...JSON.parse(JSON_CONFIG), max_batch_size: size })
    await step.models.load('m', { config, files: new Map() })
    t.equal(batches(), size)
  }
  await override(4)
  await step.models.load('m')
  t.equal(batches(), 4)
  await override(5)
  await t.rejects(step.models.load('m', { config: '{"backend":"nope"}', files: new Map() }))
  await step.models.load('m')
  t.equal(batches(), 5, 'a load that failed changes nothing')
  await write('m/1/f', 'b')
  await step.models.load('m')
  t.equal(batches(), 0, 'the files have changed')
  await override(6)
  step.models.unload('m')
  await step.models.load('m')
  t.equal(batches(), 0, 'it was unloaded')
})

await t.test('an unload, and the end, abort a load that an engine is at', async (t) => {
  const { step, engine } = await open(t, { m: { 1: { f: 'a' } }, n: { 1: { f: 'a' } } })
  const begun: string[] = []
  const aborted: string[] = []
  engine.beforeLoad = (key, _, { signal }) =>
    new Promise((_, reject) => {
      begun.push(key)
      signal?.addEventListener('abort', () => {
        aborted.push(key)
        reject(new Error('given up'))
      })
    })
  const overtaken = [step.models.load('m'), step.models.load('n')].map((load) =>
    t.rejects(load, { code: 'INVALID_ARGUMENT', message: /Newer operation has been applied/ }),
  )
  await until(() => begun.length === 2)
  step.models.unload('m')
  await overtaken[0]
  t.same(aborted, ['m/1'])
  await step.close()
  await Promise.all(overtaken)
  t.same(aborted, ['m/1', 'n/1'])
})

await t.test('a model that never came to loading is forgotten when it goes', async (t) => {
  const { step, write } = await open(t, { m: { 1: { f: 'a' } } })
  await write('m/config.pbtxt', 'backend: "scripted" max_batch_size: -1')
  await t.rejects(step.models.load('m'))
  t.equal(step.served().length, 1)
  step.models.unload('m')
  t.same(step.served(), [])
  // As in Triton, one whose policy chooses no version is known all the same.
  await write('m/config.pbtxt', CONFIG.replace('all { }', 'specific { versions: [ 7 ] }'))
  const message = /^load failed for model 'm': at least one version must be available under/
  await t.rejects(step.models.load('m'), { code: 'INVALID_ARGUMENT', message })
  t.match(step.served(), [{ config: { name: 'm' }, versions: [], reason: /^at least one/ }])
  step.models.unload('m')
  t.match(step.served(), [{ config: { name: 'm' }, versions: [], reason: 'unloaded' }])
})

await t.test(
  'loads of one model go one after the other, and an unload overtakes them',
  async (t) => {
    const { step, engine, write, states } = await open(t, { m: { 1: { f: 'a' } } })
    let gate = Promise.withResolvers<void>()
    engine.beforeLoad = () => gate.promise
    const overtaken = [step.models.load('m'), step.models.load('m')]
    await until(() => states().length > 0)
    step.models.unload('m')
    t.same(states(), ['1: UNAVAILABLE unloaded'])
    const next = step.models.load('m')
    gate.resolve()
    for (const load of overtaken) {
      await t.rejects(load, {
        code: 'INVALID_ARGUMENT',
        message:
          "load failed for model 'm': Newer operation has been applied to the model lifecycle, current load operation is out-dated.\n",
      })
    }
    await next
    t.same(states(), ['1: READY'])

    gate = Promise.withResolvers()
    await write('m/1/f', 'b')
    const first = step.models.load('m')
    await new Promise(setImmediate)
    const second = step.models.load('m')
    gate.resolve()
    await Promise.all([first, second])
    t.same(states(), ['1: READY'])
    t.equal(engine.mostParallelLoads, 1)
  },
)

await t.test('versions that a reload leaves out are listed as unloaded', async (t) => {
  const { step, write, states } = await open(t, { m: { 1: { f: 'a' }, 2: { f: 'a' } } })
  await step.models.load('m')
  await write('m/config.pbtxt', CONFIG.replace('all { }', 'specific { versions: [ 2 ] }'))
  await step.models.load('m')
  await until(() => states()[0] !== '1: UNLOADING')
  t.same(states(), ['1: UNAVAILABLE unloaded', '2: READY'])
})

await t.test('files of a request live as long as what was loaded of them', async (t) => {
  const { step, engine } = await open(t, { m: { 1: { f: 'a' } } })
  const overrides = { config: JSON_CONFIG, files: new Map([['3/f', Buffer.from('x')]]) }
  await step.models.load('m', overrides)
  const directory = engine.sources.get('m/3')?.versionDirectory ?? ''
  t.ok(await stat(join(directory, 'f')))
  await step.models.load('m', { ...overrides, files: new Map([['3/f', Buffer.from('x')]]) })
  t.equal(engine.sources.get('m/3')?.versionDirectory, directory, 'the same files change nothing')
  engine.failures.set('m/4', new ServeError('MODEL_LOAD_FAILED', 'bad'))
  const bad = { config: JSON_CONFIG, files: new Map([['4/f', Buffer.from('x')]]) }
  await t.rejects(step.models.load('m', bad), { message: /version 4 is at UNAVAILABLE state/ })
  t.ok(await stat(directory))
  await step.models.load('m')
  t.same([states(step), step.models.failures], [['1: READY', '3: UNLOADING'], 0])
  await untilGone(directory)
  await step.models.load('only_here', overrides)
  const other = engine.sources.get('only_here/3')?.versionDirectory ?? ''
  step.models.unload('only_here')
  await untilGone(other)
})

async function untilGone(path: string): Promise<void> {
  for (;;) {
    try {
      await stat(path)
    } catch {
      return
    }
  }
}

await t.test('what there is not to load says so, and what is an ensemble too', async (t) => {
  const { step, write } = await open(t, { m: { 1: { f: 'a' } } })
  await t.rejects(step.models.load('missing'), {
    code: 'INTERNAL',
    message:
      "failed to load 'missing', failed to poll from model repository: no model repository has a directory 'missing'",
  })
  t.same([states(step, 'missing'), step.models.failures], [[], 0], 'no model has failed')
  await write(
    'm/config.pbtxt',
    `platform: "ensemble" ensemble_scheduling { step { model_name: "a" model_version: -1 } }`,
  )
  await t.rejects(step.models.load('m'), {
    message:
      "failed to load 'm', failed to poll from model repository: it is an ensemble, which a router serves",
  })
})

await t.test('statistics and metrics begin anew with each load', async (t) => {
  const metrics = new ServerMetrics()
  const { step, write } = await open(t, { m: { 1: { f: 'a' } } }, { metrics })
  await step.models.load('m')
  await sent(step, revisionOf(step))
  const count = async (): Promise<bigint | undefined> =>
    (await step.control.statistics('m', '1'))[0]?.success.count
  t.equal(await count(), 1n)
  await write('m/1/f', 'b')
  await step.models.load('m')
  t.equal(await count(), 0n)
  await until(() => step.retired().length === 0)
  t.match(await metrics.render(), 'nv_inference_request_success{model="m",version="1"} 0')
  step.models.unload('m')
  await until(() => step.retired().length === 0)
  t.same(await step.control.statistics('m', ''), [])
  t.notMatch(await metrics.render(), 'model="m"')
})

await t.test('a step that closes drops what it loads', async (t) => {
  const { step, engine } = await open(t, { m: { 1: { f: 'a' } } })
  const gate = Promise.withResolvers<void>()
  engine.beforeLoad = () => gate.promise
  const loaded = step.models.load('m')
  await until(() => states(step).length > 0)
  const closed = step.close()
  gate.resolve()
  await t.rejects(loaded, { message: /Newer operation has been applied/ })
  await closed
  t.equal(engine.model('m/1').isClosed, true)
})

await t.test('at most 1024 unloaded models stay listed', async (t) => {
  const { step } = await open(t, {})
  const config = JSON_CONFIG
  for (let i = 0; i < 1030; i++) {
    const name = `m${i}`
    await step.models.load(name, { config, files: new Map([['1/f', Buffer.from('x')]]) })
    step.models.unload(name)
    await until(() => step.retired().length === 0)
  }
  step.models.unload('m1029')
  t.equal(step.served().length, 1024)
  t.same(states(step, 'm0'), [])
  t.same(states(step, 'm1029'), ['1: UNAVAILABLE unloaded'])
})
