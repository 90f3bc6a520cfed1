import { ok } from 'node:assert/strict'
import { parseDescriptionJson, parseStartProgress, parseStepLoad } from '@tutti/api'
import { scanRepositories } from '@tutti/repository'
import t from 'tap'
import { openStep, type Step } from '../step.ts'
import { ScriptedEngine } from '../testing/index.ts'
import { stepOptions } from '../testing/open-test-step.ts'
import { startTestStep } from '../testing/start-test-step.ts'
import { createStepAnswers } from './step-answers.ts'

const IO = `input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 2 ] }`
const inputs = [{ name: 'x', datatype: 'FP32', shape: [1, 2], data: [1, 2] }]

async function ask(port: number, path: string): Promise<unknown> {
  return (await fetch(`http://127.0.0.1:${port}${path}`)).json()
}

await t.test('a step tells what it serves and how loaded it is', async (t) => {
  const engine = new ScriptedEngine()
  const repository = t.testdir({
    serial: {
      'config.pbtxt': `backend: "scripted" max_batch_size: 8 ${IO} instance_group { count: 2 kind: KIND_CPU }`,
      1: { f: '' },
      2: { f: '' },
    },
    batched: {
      'config.pbtxt': `backend: "scripted" max_batch_size: 8 ${IO} dynamic_batching {} instance_group { count: 3 kind: KIND_CPU }`,
      1: { f: '' },
    },
    broken: { 'config.pbtxt': 'backend: "scripted" nonsense', 1: { f: '' } },
  })
  const { ready, member } = await startTestStep(t, [`--model-repository=${repository}`], {
    engines: [engine],
  })
  const port = Number(ready.metricsPort)
  const description = parseDescriptionJson(await ask(port, '/tutti/v1/served'))
  t.same(description, parseDescriptionJson(member.options.describe()))
  t.same(
    description.models.map(({ name, versions }) => [name, versions.map(({ state }) => state)]),
    [
      ['batched', ['READY']],
      ['broken', []],
      ['serial', ['READY']],
    ],
  )
  const idle = [
    { name: 'batched', inFlight: 0, queued: 0, slots: 24, requests: 0 },
    { name: 'serial', inFlight: 0, queued: 0, slots: 2, requests: 0 },
  ]
  t.same(parseStepLoad(await ask(port, '/tutti/v1/load')), { models: idle })

  const infer = () =>
    fetch(`http://127.0.0.1:${ready.httpPort}/v2/models/serial/infer`, {
      method: 'POST',
      body: JSON.stringify({ inputs }),
    })
  const answers = [infer(), infer(), infer(), infer(), infer()]
  const model = engine.model('serial/2')
  await model.begun(2)
  const serial = async () =>
    parseStepLoad(await ask(port, '/tutti/v1/load')).models.find(({ name }) => name === 'serial')
  // Those that wait arrive one by one.
  while ((await serial())?.queued !== 3) await new Promise((resolve) => setImmediate(resolve))
  t.same(await serial(), { name: 'serial', inFlight: 2, queued: 3, slots: 2, requests: 5 })
  for (let i = 0; i < 5; i++) {
    await model.begun(i + 1)
    model.at(i).finish()
  }
  for (const answer of await Promise.all(answers)) t.equal(answer.status, 200)
  const [batched, used] = idle
  t.same(parseStepLoad(await ask(port, '/tutti/v1/load')), {
    models: [batched, { ...used, requests: 5 }],
  })
})

await t.test('it says what it loads while it loads', async (t) => {
  const engine = new ScriptedEngine()
  let step: Step | undefined
  const answers = createStepAnswers({ replica: 'r1', host: 'h' }, () => step)
  const ask = (path: string): unknown => answers.get(path)?.(new URLSearchParams())
  t.same(ask('/tutti/v1/load'), { models: [] })
  t.same(ask('/tutti/v1/served'), { replica: 'r1', host: 'h', models: [] })
  const [model] = await scanRepositories([
    t.testdir({ m: { 'config.pbtxt': `backend: "scripted" ${IO}`, 1: { f: '' } } }),
  ])
  ok(model)
  const loading = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  engine.beforeLoad = () => {
    loading.resolve()
    return held.promise
  }
  const take = async () => ({ model, digest: 'd', filesDigest: 'd', release: async () => {} })
  step = openStep(stepOptions({ repository: { take }, engines: [engine] }))
  t.teardown(() => step?.close())
  const loaded = step.models.load('m')
  await loading.promise
  const { models } = parseDescriptionJson(ask('/tutti/v1/served'))
  t.match(models, [{ name: 'm', versions: [{ version: 1, state: 'LOADING' }] }])
  t.same(ask('/tutti/v1/load'), { models: [] })
  const loads = [{ model: 'm', doing: 'version 1, engine scripted' }]
  t.same(parseStartProgress(ask('/tutti/v1/start')), { loads })
  held.resolve()
  await loaded
  t.same(ask('/tutti/v1/start'), { loads: [] })
  t.match(ask('/tutti/v1/load'), { models: [{ name: 'm', slots: 1 }] })
})
