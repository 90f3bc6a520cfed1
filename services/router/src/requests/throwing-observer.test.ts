import { systemClock } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import {
  notingObserver,
  OBSERVED_EVENTS,
  ObservedMetrics,
  throwingObserver,
} from '@tutti/telemetry/testing'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import type { NestedCall } from '../calls/request-dependencies.ts'
import {
  chain,
  ensembleIo,
  floats,
  oneToOne,
  quiet,
  request,
  scriptedRouter,
  step,
} from '../testing/index.ts'
import { EnsembleRecord } from './ensemble-record.ts'

const outer = `${ensembleIo} ensemble_scheduling { ${step('inner', 'IN', 'OUT', { names: ['IN', 'OUT'] })} }`

for (const event of OBSERVED_EVENTS) {
  await t.test(`an observer that throws at ${event} costs no request to an ensemble`, async (t) => {
    const { router } = await scriptedRouter({
      metrics: new ObservedMetrics(throwingObserver(event)),
      ensembles: { inner: chain('one'), outer },
      models: { one: { config: oneToOne, run: () => new Map([['Y', floats('Y', [1])]]) } },
    })
    for (const name of ['inner', 'outer']) {
      const responses = responsesTo(router.resolve(name, ''), request('IN', [1]), quiet)
      for await (const response of responses) t.match(response, { final: true })
    }
    t.match(await router.statistics('inner', ''), [{ success: { count: 2n } }])
    t.same(router.memory, { count: 0, bytesInUse: 0 })
    await router.whenUnpinned({ model: 'one', version: 1, revision: 'revision-1' })
  })
}

await t.test('an ensemble publishes what it admits, to its end', async (t) => {
  const notes: string[] = []
  const { router } = await scriptedRouter({
    metrics: new ObservedMetrics(notingObserver(notes)),
    ensembles: { inner: chain('one'), outer },
    models: { one: { config: oneToOne, run: () => new Map([['Y', floats('Y', [1])]]) } },
  })
  const infer = async (name: string, input: string): Promise<void> => {
    const responses = responsesTo(router.resolve(name, ''), request(input, [1]), quiet)
    try {
      for await (const _ of responses);
    } catch {}
  }
  await infer('inner', 'wrong')
  t.same(notes.splice(0), [], 'what its checks refuse does not begin')
  await infer('inner', 'IN')
  const whole = ['began', 'queued', 'dequeued', 'ended', 'responded', 'answered']
  t.same(notes.splice(0), whole)
  await infer('outer', 'IN')
  t.equal(notes.length, 2 * whole.length)
  for (const event of whole) t.equal(notes.filter((note) => note === event).length, 2)
})

await t.test('an ensemble that answers without times fails, and its client learns it', (t) => {
  const notes: string[] = []
  const entry = { name: 'e' }
  const target = { entry, version: { version: 1 } } as unknown as NestedCall['target']
  const { signal } = new AbortController()
  const call = { target, request: request('IN', [1]), context: { signal } }
  const sink = {
    send: () => notes.push('sent'),
    fail: (error: ServeError, executed: string) => notes.push(`failed ${error.code} ${executed}`),
  }
  const observer = notingObserver(notes)
  const record = new EnsembleRecord(
    { clock: systemClock, tracing: undefined, observer },
    call,
    sink,
  )
  record.begin(1)
  record.send({ index: 0, final: true, outputs: [], parameters: new Map() })
  const ends = ['ended INTERNAL maybe', 'failed INTERNAL maybe', 'answered']
  t.same(notes, ['began', 'queued', 'dequeued', ...ends])
  t.end()
})
