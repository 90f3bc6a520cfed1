import type { Clock } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import type { Client, WatchEvent, WatchOptions } from '../client.ts'
import { CONFIG_MAP, type ConfigMap } from '../kinds/core.ts'
import { KubeError } from '../kube-error.ts'
import type { Stored } from '../object.ts'
import { openReflector, type ReflectorLog } from '../testing/reflector-log.ts'

type Line = WatchEvent<ConfigMap> | { readonly fails: Error } | 'stay open'

function map(name: string, resourceVersion: string, uid = `uid-${name}`): Stored<ConfigMap> {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, uid, resourceVersion, creationTimestamp: '2026-01-01T00:00:00Z' },
  }
}

const added = (name: string, version: string): Line => ({
  type: 'ADDED',
  object: map(name, version),
})

function bookmark(resourceVersion: string, isInitialEnd = false): Line {
  return { type: 'BOOKMARK', resourceVersion, isInitialEnd }
}

function failure(status: number, retryAfterMs?: number): { readonly fails: KubeError } {
  const reason = status === 410 ? 'Expired' : 'Odd'
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
  return { fails: new KubeError({ status, reason, message: 'scripted', ...wait }) }
}

interface Bench {
  readonly log: ReflectorLog<ConfigMap>
  /** Questions that were asked: `list`, `initial` or the version from which a watch goes on. */
  readonly asked: readonly string[]
  /** Waits between tries; they are over at once. */
  readonly waits: readonly number[]
}

/** A reflector of a server that answers each question with the next of `answers`, and the one after the last with silence. */
function openBench(
  t: Test,
  answers: readonly (readonly Line[] | { readonly fails: Error })[],
  o: { readonly lastsMs?: number; readonly pages?: readonly Stored<ConfigMap>[] } = {},
): Bench {
  const asked: string[] = []
  const waits: number[] = []
  const manual = createManualClock()
  const left = [...answers]
  const setTimer: Clock['setTimer'] = (delayMs, callback) => {
    waits.push(delayMs)
    const immediate = setImmediate(() => {
      manual.advance(delayMs)
      callback()
    })
    return () => clearImmediate(immediate)
  }
  async function* events(lines: readonly Line[], signal: WatchOptions['signal']) {
    for (const line of lines) {
      if (line === 'stay open') await aborted(signal)
      else if ('fails' in line) throw line.fails
      else yield line
    }
    manual.advance(o.lastsMs ?? 0)
  }
  const client = {
    list: () => {
      asked.push('list')
      return Promise.resolve({ items: o.pages ?? [], resourceVersion: '50' })
    },
    watch: (_: unknown, { isInitial, resourceVersion, signal }: WatchOptions) => {
      asked.push(isInitial ? 'initial' : resourceVersion)
      const answer = left.shift() ?? ['stay open' as const]
      if ('fails' in answer) return Promise.reject(answer.fails)
      return Promise.resolve({ events: events(answer, signal), close: () => {} })
    },
  } as unknown as Client
  const clock = { ...manual, setTimer }
  const log = openReflector<ConfigMap>(t, { client, resource: CONFIG_MAP, clock })
  return { log, asked, waits }
}

function aborted(signal: WatchOptions['signal']): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
  })
}

function isAsked(bench: Bench, times: number): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (bench.asked.length >= times) resolve()
      else setImmediate(look)
    }
    look()
  })
}

const SYNCED = [added('a', '3'), bookmark('10', true)] as const

await t.test('it goes on from the last version, that of a bookmark too', async (t) => {
  const lastsMs = 5000
  const bench = openBench(t, [SYNCED, [added('b', '11')], [bookmark('20')], []], { lastsMs })
  await isAsked(bench, 5)
  t.same(bench.asked, ['initial', '10', '11', '20', '20'])
  t.same(bench.waits, [], 'a watch that the server ends is no failure')
  t.same(bench.log.events, ['initial a', 'added b'])
})

await t.test('the versions of the first objects are none to go on from', async (t) => {
  const bench = openBench(t, [[added('a', '3'), added('b', '2')], SYNCED])
  await isAsked(bench, 3)
  t.same(bench.asked, ['initial', 'initial', '10'])
  await bench.log.until(() => bench.log.reflector.hasSynced)
  t.same(bench.log.events, ['initial a'])
})

await t.test('a watch that ends at once is not opened again at once', async (t) => {
  const bench = openBench(t, [SYNCED, [], [], []])
  await isAsked(bench, 5)
  t.same(bench.waits, [400, 800, 1600])
})

await t.test('failures wait longer and longer, up to half a minute', async (t) => {
  const bench = openBench(t, [SYNCED, ...Array.from({ length: 8 }, () => failure(500))])
  await isAsked(bench, 10)
  t.same(bench.waits, [400, 800, 1600, 3200, 6400, 12_800, 15_000, 15_000])
  t.match(bench.log.reflector.stats(), { lists: 1, watches: 2, errors: 8, objects: 1 })
  t.equal(bench.log.lines.filter(({ level }) => level === 'warn').length, 1, 'one line a streak')
})

await t.test('after two good minutes a failure is the first again', async (t) => {
  const lastsMs = 130_000
  const answers = [SYNCED, failure(500), failure(500), [bookmark('11')], failure(500)]
  const bench = openBench(t, answers, { lastsMs })
  await isAsked(bench, 6)
  t.same(bench.waits, [400, 800, 400])
})

await t.test('a wait that the server asks for is kept, up to a minute', async (t) => {
  const bench = openBench(t, [SYNCED, failure(429, 7000), failure(429, 3_600_000)])
  await isAsked(bench, 4)
  t.same(bench.waits, [7000, 60_000])
})

await t.test(
  'a version that is too old has everything read anew at once, but not in a circle',
  async (t) => {
    const answers = [SYNCED, failure(410), SYNCED, [failure(410)], SYNCED, failure(410), SYNCED]
    const bench = openBench(t, answers)
    await isAsked(bench, 8)
    t.same(bench.asked, ['initial', '10', 'initial', '10', 'initial', '10', 'initial', '10'])
    t.same(bench.waits, [400, 800])
    t.same(bench.log.events, ['initial a'], 'what did not change is no event')
  },
)

await t.test('without WatchList the pages are read, also after an expiry', async (t) => {
  const pages = [map('a', '3')]
  const bench = openBench(t, [failure(400), [added('b', '51')], failure(410)], {
    pages,
    lastsMs: 5000,
  })
  await isAsked(bench, 6)
  t.same(bench.asked, ['initial', 'list', '50', '51', 'list', '50'])
  t.same(bench.log.events, ['initial a', 'added b', 'deleted b'])
  t.equal(bench.waits.length, 0)
})

await t.test('a name with another uid is another object', async (t) => {
  const other: Line = { type: 'MODIFIED', object: map('a', '11', 'other') }
  const stale: Line = { type: 'DELETED', object: map('a', '12') }
  const gone: Line = { type: 'DELETED', object: map('a', '13', 'other') }
  const bench = openBench(t, [[...SYNCED, other, stale, gone, 'stay open']])
  await bench.log.until(() => bench.log.events.length === 4)
  t.same(bench.log.events, ['initial a', 'deleted a', 'added a', 'deleted a'])
})

await t.test('it can be closed while it waits and while it watches', async (t) => {
  for (const answers of [
    [failure(500), failure(500)],
    [SYNCED, ['stay open'] as const],
  ]) {
    const bench = openBench(t, answers)
    await isAsked(bench, 2)
    await bench.log.reflector.close()
    const { errors } = bench.log.reflector.stats()
    t.ok(errors <= 2)
  }
})
