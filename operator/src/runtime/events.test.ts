import { silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import type { Event, Stored } from '@tutti/kube'
import t from 'tap'
import { kubeError, memoryClient } from '../testing/memory-client.ts'
import { settle } from '../testing/settle.ts'
import { testMetrics } from '../testing/test-metrics.ts'
import { distinct, type EventInput, EventRecorder } from './events.ts'

const model = (name: string) => ({
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Model',
  metadata: { name, namespace: 'ns', uid: `uid-${name}` },
})

const input = (o: Partial<EventInput> = {}): EventInput => ({
  regarding: model('m'),
  type: 'Warning',
  reason: 'LoadFailed',
  action: 'Load',
  note: 'no such file',
  ...o,
})

function rig() {
  const clock = createManualClock()
  const client = memoryClient()
  const { runtime, read } = testMetrics()
  const recorder = new EventRecorder({
    client,
    controller: 'tutti.dev/operator',
    instance: 'pod-1',
    clock,
    random: () => 0,
    log: silentLogger,
    metrics: runtime,
  })
  const events = () => [...client.objects.values()] as Stored<Event>[]
  return { clock, client, recorder, events, read }
}

await t.test('an event says what happened to what', async (t) => {
  const { recorder, events } = rig()
  recorder.record(input())
  await settle()
  t.match(events()[0], {
    metadata: { namespace: 'ns', name: /^m\.[0-9a-f]{16}$/ },
    eventTime: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/,
    reportingController: 'tutti.dev/operator',
    reportingInstance: 'pod-1',
    type: 'Warning',
    reason: 'LoadFailed',
    action: 'Load',
    note: 'no such file',
    regarding: { kind: 'Model', name: 'm', uid: 'uid-m' },
  })
})

await t.test('ten thousand of a kind are one event and two writes', async (t) => {
  const { clock, client, recorder, events, read } = rig()
  for (let at = 0; at < 10_000; at++) recorder.record(input())
  await settle()
  t.equal(client.calls.length, 2)
  t.match(events()[0]?.series, { count: 2 })
  t.equal(await read('events_total{result="folded"}'), 9999)
  t.equal(clock.pending, 0)
})

await t.test('an event that goes on for long is told every half hour', async (t) => {
  const { clock, client, recorder } = rig()
  for (let minute = 0; minute < 120; minute++) {
    recorder.record(input())
    clock.advance(60_000)
    await settle()
  }
  t.equal(client.calls.length, 1 + 1 + 3)
})

await t.test('an object has a bounded number of events, and others have theirs', async (t) => {
  const { clock, recorder, events, read } = rig()
  for (let at = 0; at < 100; at++) recorder.record(input({ note: `n${at}` }))
  recorder.record(input({ regarding: model('other') }))
  await settle()
  t.equal(events().length, 26)
  t.equal(await read('events_total{result="dropped"}'), 75)
  clock.advance(300_000)
  recorder.record(input({ note: 'later' }))
  await settle()
  t.equal(events().length, 27)
})

await t.test('a server that fails is asked again, and no reconcile waits for it', async (t) => {
  const { clock, client, recorder, events, read } = rig()
  client.onCall = () => {
    if (client.calls.length < 3) throw kubeError(503, 'ServiceUnavailable')
  }
  recorder.record(input())
  await settle()
  for (let at = 0; at < 4; at++) {
    clock.advance(10_000)
    await settle()
  }
  t.equal(events().length, 1)
  client.onCall = () => {
    throw kubeError(403, 'Forbidden')
  }
  recorder.record(input({ note: 'refused' }))
  await settle()
  t.equal(await read('events_total{result="failed"}'), 1)
})

await t.test(
  'an answer that was lost makes no second event; one that has gone is made anew',
  async (t) => {
    const { clock, client, recorder, events } = rig()
    client.onAnswer = () => {
      client.onAnswer = undefined
      throw kubeError(0, 'NoConnection')
    }
    recorder.record(input())
    await settle()
    clock.advance(10_000)
    await settle()
    t.equal(events().length, 1)
    for (const { metadata, kind } of events()) {
      client.remove({ kind } as never, { namespace: 'ns', name: metadata.name })
    }
    recorder.record(input())
    await settle()
    t.match(events()[0]?.series, { count: 2 })
  },
)

await t.test('a note is cut to the bytes that the server takes', async (t) => {
  const { recorder, events } = rig()
  recorder.record(input({ note: `x${'ü'.repeat(2000)}` }))
  await settle()
  const note = events()[0]?.note ?? ''
  t.ok(Buffer.byteLength(note) <= 1024)
  t.match(note, /^xü+…$/)
})

await t.test('at the end, what is on its way is waited for, until it is given up', async (t) => {
  const { client, recorder, events } = rig()
  for (let at = 0; at < 5; at++) recorder.record(input())
  await recorder.close({ signal: new AbortController().signal })
  t.match(events()[0]?.series, { count: 2 })
  recorder.record(input({ note: 'late' }))
  t.equal(events().length, 1)

  const other = rig()
  other.client.onCall = async () => {
    throw kubeError(503, 'ServiceUnavailable')
  }
  other.recorder.record(input())
  await settle()
  const limit = new AbortController()
  const closed = other.recorder.close({ signal: limit.signal })
  limit.abort()
  await closed
  t.equal(client.calls.length > 0, true)
})

await t.test('two conditions that say the same are one event', async (t) => {
  const other = input({ note: 'another file' })
  t.same(distinct([input(), other, input()]), [input(), other])
})
