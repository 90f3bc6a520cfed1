import { join } from 'node:path'
import { createLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ModelRepository } from '@tutti/repository'
import t from 'tap'
import { openStep } from '../step.ts'
import { stepOptions } from '../testing/open-test-step.ts'
import { ScriptedEngine } from '../testing/scripted-engine.ts'

const CONFIG = `backend: "scripted"
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }`

await t.test('while models load, a line every 5 s tells how far they are', async (t) => {
  const names = ['a', 'b', 'c']
  const folder = t.testdir({
    models: Object.fromEntries(
      names.map((name) => [name, { 'config.pbtxt': CONFIG, 1: { f: '' } }]),
    ),
  })
  const repository = new ModelRepository({ paths: [join(folder, 'models')] })
  const engine = new ScriptedEngine()
  const gates = new Map(names.map((name) => [`${name}/1`, Promise.withResolvers<void>()]))
  const begun = new Set<string>()
  let onBegin: (() => void) | undefined
  engine.beforeLoad = async (key) => {
    begun.add(key)
    onBegin?.()
    await gates.get(key)?.promise
  }
  const hasBegun = async (count: number): Promise<void> => {
    while (begun.size < count) await new Promise<void>((resolve) => (onBegin = resolve))
  }
  const clock = createManualClock()
  const lines: string[] = []
  const log = createLogger({ name: 'test', destination: { write: (line) => lines.push(line) } })
  const options = { repository, engines: [engine], clock, log, loadParallelism: 1 }
  const step = openStep(stepOptions(options))
  t.teardown(async () => {
    await step.close()
    await repository.close()
  })
  const told = () =>
    lines.map((line) => JSON.parse(line)).filter(({ message }) => message === 'loading models')

  const loads = ['a', 'b'].map((name) => step.models.load(name))
  await hasBegun(1)
  const [first = ''] = begun
  const [a, b] = step.models.loads()
  const ofFirst = { model: first.slice(0, -2), doing: 'version 1, engine scripted' }
  t.strictSame(
    [a, b].find((load) => load?.model === ofFirst.model),
    ofFirst,
  )
  const waits = [a, b].find((load) => load?.model !== ofFirst.model)
  t.match(waits, { doing: 'the loads of other models' })
  clock.advance(4999)
  t.same(told(), [], 'nothing for what is quick')
  clock.advance(1)
  const longest = [{ model: first.slice(0, -2), elapsedMs: 5000 }]
  t.match(told(), [{ level: 'info', done: 0, total: 2, longest }])
  gates.get(first)?.resolve()
  await hasBegun(2)
  const [, second = ''] = begun
  clock.advance(5000)
  const next = { done: 1, total: 2, longest: [{ model: second.slice(0, -2), elapsedMs: 5000 }] }
  t.match(told()[1], next)
  gates.get(second)?.resolve()
  await Promise.all(loads)
  await new Promise(setImmediate)
  clock.advance(60_000)
  t.equal(told().length, 2, 'none when all is done')

  const last = step.models.load('c')
  await hasBegun(3)
  clock.advance(5000)
  t.match(told()[2], { done: 0, total: 1 }, 'later loads are counted anew')
  step.models.unload('c')
  gates.get('c/1')?.resolve()
  await t.rejects(last)
  await new Promise(setImmediate)
  clock.advance(60_000)
  t.equal(told().length, 3, 'one that was overtaken is over too')
})
