import { readFile } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'
import { findModel } from '@tutti/serving'
import t from 'tap'
import { openLoaderRig } from '../testing/loader-rig.ts'
import type { ScriptedEngine } from '../testing/scripted-engine.ts'

/** Without inputs and outputs: the engine says them, of each version. */
const BARE = 'backend: "scripted" default_model_filename: "f" '
const ALL = `${BARE} version_policy { all { } }`

/** A version whose file says how many classes it has. */
function classes(count: number) {
  return { f: String(count) }
}

/** Has models say so many classes as their files do. @returns the files that were looked at. */
function inspectClasses(engine: ScriptedEngine): readonly string[] {
  const inspected: string[] = []
  engine.inspect = async (file) => {
    inspected.push(file)
    const text = await readFile(file, 'utf8')
    if (text === 'broken') throw new ServeError('MODEL_LOAD_FAILED', text)
    const tensor = { datatype: 'FP32' as const }
    return {
      inputs: [{ name: 'x', dims: [-1], ...tensor }],
      outputs: [{ name: 'y', dims: [Number(text)], ...tensor }],
      batchable: false,
    }
  }
  return inspected
}

await t.test('each version has the inputs and outputs that it says itself', async (t) => {
  const { step, engine, write } = await openLoaderRig(t, { m: { 1: classes(3), 2: classes(5) } })
  inspectClasses(engine)
  await write('m/config.pbtxt', ALL)
  await step.models.load('m')
  const [model] = step.served()
  t.ok(model)
  if (model === undefined) return
  const dims = (version: string): unknown =>
    findModel(new Map([['m', model]]), 'm', version).config.output[0]?.dims
  t.same([dims('1'), dims('2'), dims('')], [[3], [5], [5]])
  t.same(
    ['m/1', 'm/2'].map((key) => engine.sources.get(key)?.config.output[0]?.dims),
    [[3], [5]],
    'so are they loaded',
  )
})

await t.test('what no version can change is refused before any is loaded', async (t) => {
  const { step, engine, write } = await openLoaderRig(t, { m: { 1: classes(3) } })
  const inspected = inspectClasses(engine)
  const LEVELS = 'preserve_ordering: true priority_levels: 2 default_priority_level: 1'
  const CASES = [
    ['max_batch_size: 4', LEVELS, /poll from model repository: Only one priority level/],
    ['', LEVELS, /poll from model repository: Only one priority level/],
    ['', 'preferred_batch_size: [ -1 ]', /poll from model repository: .* must be positive/],
    ['max_batch_size: 4', 'preferred_batch_size: [ 8 ]', /repository: .* <= max batch size/],
    ['', 'preferred_batch_size: [ 8 ]', /version 1 is at UNAVAILABLE state: .* <= max batch/],
  ] as const
  for (const [size, batching, message] of CASES) {
    await write('m/config.pbtxt', `${BARE} ${size} dynamic_batching { ${batching} }`)
    await t.rejects(step.models.load('m'), { message })
  }
  t.equal(inspected.length, 1, 'the engine is asked where it may say a batch size')
})

await t.test('versions that are equal share a configuration', async (t) => {
  const { step, engine, write } = await openLoaderRig(t, { m: { 1: classes(3), 2: classes(3) } })
  inspectClasses(engine)
  await write('m/config.pbtxt', ALL)
  await step.models.load('m')
  t.same(
    step.served()[0]?.versions.map(({ own }) => own),
    [undefined, undefined],
  )
})

await t.test('a version that is not served is not looked at', async (t) => {
  const { step, engine, write, states } = await openLoaderRig(t, {
    m: { 1: { f: 'broken' }, 2: classes(5), 3: { f: 'broken' } },
  })
  const inspected = inspectClasses(engine)
  await write('m/config.pbtxt', `${BARE} version_policy { specific { versions: [ 2 ] } }`)
  await step.models.load('m')
  t.same(states(), ['2: READY'])
  t.match(inspected, [/2.f$/])
  t.equal(inspected.length, 1)
})

await t.test(
  'a version whose model cannot be read fails alone, and what is served stays',
  async (t) => {
    const { step, engine, write, states } = await openLoaderRig(t, {
      m: { 1: classes(3), 2: { f: 'broken' } },
    })
    inspectClasses(engine)
    await write('m/config.pbtxt', `${BARE} version_policy { specific { versions: [ 1 ] } }`)
    await step.models.load('m')
    await write('m/config.pbtxt', ALL)
    await t.rejects(step.models.load('m'), {
      code: 'INVALID_ARGUMENT',
      message: "load failed for model 'm': version 2 is at UNAVAILABLE state: Internal: broken;\n",
    })
    t.same(states(), ['1: READY', '2: UNAVAILABLE Internal: broken'])
  },
)
