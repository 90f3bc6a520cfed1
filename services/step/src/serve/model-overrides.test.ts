import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDescriptionJson } from '@tutti/api'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { ScriptedEngine } from '../testing/index.ts'
import { startTestStep } from '../testing/start-test-step.ts'
import { readModelOverrides } from './model-directories.ts'

const tensor = (name: string) => ({ name, datatype: 'FP32', shape: [-1] })
const tensors = `input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }`
const CONFIG = `backend: "python" max_batch_size: 4 ${tensors}
version_policy { all {} } parameters { key: "k" value { string_value: "v" } }`

/** Serves a model `m` of versions 1 to 3 with overrides. */
async function serve(
  t: Test,
  overrides: object | string | undefined,
  o: { readonly config?: string; readonly argv?: readonly string[] } = {},
) {
  const folder = t.testdir()
  const model = join(folder, 'm')
  for (const version of [1, 2, 3]) {
    await mkdir(join(model, `${version}`), { recursive: true })
    await writeFile(join(model, `${version}/model.py`), 'code')
  }
  await writeFile(join(model, 'config.pbtxt'), o.config ?? CONFIG)
  const engines = [new ScriptedEngine('python'), new ScriptedEngine('onnxruntime')]
  for (const engine of engines) {
    engine.isImmediate = true
    engine.sharesInterpreters = engine.backend === 'python'
  }
  const json = typeof overrides === 'string' ? overrides : JSON.stringify(overrides)
  const { member, ready } = await startTestStep(
    t,
    [
      `--model-directory=m=${model}`,
      ...(overrides === undefined ? [] : [`--model-overrides=m=${json}`]),
      ...(o.argv ?? []),
    ],
    { engines },
  )
  const [found] = parseDescriptionJson(member.options.describe()).models
  return { engines, member, ready, model: found, config: found?.config }
}

const versions = (served: Awaited<ReturnType<typeof serve>>) =>
  served.member.options.revisions().map(([, version]) => version)
const revisions = (served: Awaited<ReturnType<typeof serve>>) =>
  served.member.options.revisions().map(([, , revision]) => revision)

await t.test('every field takes effect, and what is not named stays', async (t) => {
  const plain = await serve(t, undefined)
  t.same(versions(plain), [1, 2, 3])
  t.match(plain.config, { max_batch_size: 4, instance_group: [{ count: 1 }] })
  t.same(revisions(await serve(t, {})), revisions(plain), 'nothing overridden is nothing changed')
  const input = { name: 'z', datatype: 'INT64', shape: [2] }
  const cases: readonly (readonly [object, object])[] = [
    [{ modelFormat: { name: 'onnx' } }, { backend: 'onnxruntime' }],
    [{ maxBatchSize: 7 }, { max_batch_size: 7 }],
    [{ instances: { count: 3 } }, { instance_group: [{ count: 3 }] }],
    [{ inputs: [input] }, { input: [{ name: 'z', data_type: 'TYPE_INT64', dims: [2] }] }],
    [{ outputs: [input] }, { output: [{ name: 'z', data_type: 'TYPE_INT64', dims: [2] }] }],
    [
      { batching: { preferredBatchSizes: [2], maxQueueDelay: '3ms', maxQueueLength: 5 } },
      {
        dynamic_batching: {
          preferred_batch_size: [2],
          max_queue_delay_microseconds: 3000,
          default_queue_policy: { max_queue_size: 5 },
        },
      },
    ],
    [{ versionPolicy: { latest: { numVersions: 3 } } }, { version_policy: { latest: {} } }],
  ]
  const seen = new Set([revisions(plain).join()])
  for (const [overrides, wanted] of cases) {
    const served = await serve(t, overrides)
    t.match(served.config, { parameters: { k: { string_value: 'v' } }, ...wanted })
    t.equal(served.model?.versions.length, 3)
    seen.add(revisions(served).join())
  }
  t.equal(seen.size, cases.length + 1, 'each is a revision of its own')
})

await t.test('versions are chosen', async (t) => {
  t.same(versions(await serve(t, { versionPolicy: { specific: { versions: [2] } } })), [2])
  t.same(versions(await serve(t, { versionPolicy: { latest: { numVersions: 2 } } })), [2, 3])
})

await t.test('instances, warm-up and queue are those of the overrides', async (t) => {
  const served = await serve(t, {
    versionPolicy: { specific: { versions: [1] } },
    instances: { count: 2, kind: 'KIND_CPU' },
    batching: { maxQueueLength: 1 },
    warmup: [
      {
        name: 'w',
        batchSize: 3,
        count: 2,
        inputs: [{ name: 'x', datatype: 'FP32', shape: [5], data: 'Zero' }],
      },
    ],
  })
  const [python] = served.engines
  const model = python?.model('m/1')
  t.equal(model?.executions.length, 4, 'twice on each of two instances')
  t.same(new Set(model?.executions.map(({ instance }) => instance)), new Set([0, 1]))
  t.same(
    model?.at(0).requests.map(({ inputs }) => inputs[0]?.shape),
    [
      [1, 5],
      [1, 5],
      [1, 5],
    ],
  )
  if (model !== undefined) model.isImmediate = false
  const infer = async () => {
    const inputs = [{ name: 'x', datatype: 'FP32', shape: [4, 1], data: [1, 2, 3, 4] }]
    const url = `http://127.0.0.1:${served.ready.httpPort}/v2/models/m/infer`
    return (await fetch(url, { method: 'POST', body: JSON.stringify({ inputs }) })).status
  }
  const running = [infer(), infer()]
  await model?.begun(6)
  const waiting = [infer(), infer()]
  t.equal(await Promise.race(waiting), 503, 'one may wait, the other is refused')
  for (let i = 4; i < 7; i++) {
    await model?.begun(i + 1)
    model?.at(i).finish()
  }
  t.same(
    (await Promise.all([...running, ...waiting])).toSorted((a, b) => a - b),
    [200, 200, 200, 503],
  )
})

await t.test('instances share an interpreter where the engine has one', async (t) => {
  const optionsOf = ({ engines }: Awaited<ReturnType<typeof serve>>) =>
    engines[0]?.options.get('m/3')
  const shared = await serve(t, { instances: { count: 2, sharedInterpreter: true } })
  t.match(optionsOf(shared), { instances: 2, sharesInterpreter: true })
  t.match(optionsOf(await serve(t, { instances: { count: 2 } })), { sharesInterpreter: false })
  const refused = await serve(t, {
    modelFormat: { name: 'onnx' },
    instances: { count: 2, sharedInterpreter: true },
  })
  t.equal(refused.engines[1]?.loaded.size, 0)
  t.match(
    refused.model?.versions[0]?.reason,
    /instances.sharedInterpreter: got true for model 'm' of backend 'onnxruntime', want it for Python models alone/,
  )
})

await t.test('a model without config.pbtxt has the overrides alone', async (t) => {
  const overrides = {
    modelFormat: { name: 'python' },
    inputs: [tensor('x')],
    outputs: [tensor('y')],
  }
  const served = await serve(t, overrides, { config: '' })
  t.match(served.config, { name: 'm', backend: 'python', input: [{ name: 'x' }] })
})

await t.test('contradicting fields are an error of the model', async (t) => {
  const sequence = `${CONFIG} sequence_batching {}`
  const both = await serve(t, { batching: {} }, { config: sequence })
  t.match(both.model?.reason, /batching: got it for model 'm', whose config.pbtxt has sequence_b/)
  const broken = await serve(t, { maxBatchSize: 1 }, { config: 'nonsense' })
  t.match(broken.model?.reason, /config.pbtxt.*line 1, column/)
})

await t.test('flags that are refused name the model and the field', async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['m', /^--model-overrides: "m", want NAME=JSON$/],
    ['m={', /^--model-overrides: "m": .*JSON/],
    ['m={"instances":{"count":0}}', /^--model-overrides: "m": instances: count: Too small/],
    ['m={"nmae":1}', /^--model-overrides: "m": Unrecognized key: "nmae"$/],
    ['m=[]', /^--model-overrides: "m": Invalid input: expected object/],
  ]
  for (const [text, message] of cases) {
    const details = { field: '--model-overrides' }
    t.throws(() => readModelOverrides([text]), { reason: 'FLAG_INVALID', message, details })
  }
  t.throws(() => readModelOverrides(['m={}', 'm={}']), { message: /came twice/ })
  const unknown = serve(t, undefined, { argv: ['--model-overrides=n={}'] })
  await t.rejects(unknown, { message: '--model-overrides: "n" is in no repository; there are m' })
})

await t.test('an automatic delay has a gauge, and models without one have none', async (t) => {
  const metricsOf = async (maxQueueDelay: string): Promise<string> => {
    const { ready } = await serve(t, { batching: { maxQueueDelay } })
    return await (await fetch(`http://127.0.0.1:${ready.metricsPort}/metrics`)).text()
  }
  t.match(await metricsOf('auto'), /^tutti_step_queue_delay_seconds\{model="m",version="3"\} 0$/m)
  t.notMatch(await metricsOf('1ms'), /queue_delay/)
})

await t.test('any JSON is taken or refused with the flag', (t) => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      try {
        return readModelOverrides([`m=${json}`]).size === 1
      } catch (error) {
        return error instanceof Error && error.message.startsWith('--model-overrides: "m": ')
      }
    }),
  )
  t.end()
})
