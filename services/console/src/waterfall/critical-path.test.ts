import t from 'tap'
import type { StepSpan } from '../api/step-span.ts'
import { criticalPath } from './critical-path.ts'
import { requestTimes, waterfallRows } from './waterfall-rows.ts'

const WAITS: Readonly<Record<string, readonly string[]>> = { b: ['a'], c: ['a'], d: ['b', 'c'] }

function span(name: string, startMs: number, endMs: number, depth = 1): StepSpan {
  const waitsFor = WAITS[name] ?? []
  return {
    step: name,
    model: name,
    depth,
    waitsFor,
    startMs,
    endMs,
    queueMs: 0,
    computeMs: 0,
    reason: '',
  }
}

function pathOf(...spans: readonly StepSpan[]) {
  return criticalPath(spans).map((one) => one.step)
}

await t.test('it is the chain that ended last, from its end', async (t) => {
  const ends = [span('', 0, 9, 0), span('a', 0, 1)]
  t.same(pathOf(...ends, span('b', 1, 5), span('c', 1, 3), span('d', 5, 9)), ['d', 'b', 'a'])
  t.same(pathOf(...ends, span('b', 1, 2), span('c', 1, 3), span('d', 3, 9)), ['d', 'c', 'a'])
})

await t.test('steps that ran beside it, or further down, are not on it', async (t) => {
  t.same(pathOf(span('a', 0, 1), span('b', 1, 5), span('c', 1, 3)), ['b', 'a'])
  t.same(pathOf(span('a', 0, 1), span('inner', 0, 8, 2)), ['a'])
  t.same(pathOf(), [])
})

await t.test('a step that ran twice is there as often as it was waited for', async (t) => {
  t.same(pathOf(span('a', 0, 1), span('b', 1, 2), span('b', 2, 4), span('d', 4, 5)), [
    'd',
    'b',
    'a',
  ])
})

await t.test(
  'a step that reads a stream, which goes on meanwhile, leaves the path unknown',
  async (t) => {
    t.same(pathOf(span('a', 0, 6), span('b', 1, 2), span('b', 7, 9)), ['b', 'a'])
    t.same(pathOf(span('a', 0, 6), span('b', 1, 2), span('b', 5, 8)), [])
    const spans = [{ ...span('', 0, 9, 0), computeMs: 12 }, span('a', 0, 6), span('b', 5, 8)]
    t.match(requestTimes({ spans, leftOut: 0 }), { path: [], allMs: 9, betweenMs: 0 })
  },
)

await t.test('the parts of the critical path and what is between are the whole time', async (t) => {
  const spans = [
    span('', 0, 10, 0),
    { ...span('a', 1, 3), queueMs: 0.5, computeMs: 1 },
    { ...span('b', 3, 8), queueMs: 1, computeMs: 3 },
    span('c', 3, 4),
  ]
  const times = requestTimes({ spans, leftOut: 0 })
  t.same(times, {
    path: ['a', 'b'],
    queueMs: 1.5,
    computeMs: 4,
    transferMs: 1.5,
    allMs: 10,
    betweenMs: 3,
  })
  t.same(
    waterfallRows({ spans, leftOut: 0 }).map(({ label, isCritical, bar }) => [
      label,
      isCritical,
      bar.from,
      bar.all,
    ]),
    [
      ['request', false, 0, 1],
      ['a', true, 0.1, 0.2],
      ['b', true, 0.3, 0.5],
      ['c', false, 0.3, 0.1],
    ],
  )
})

await t.test('a model alone, and times that are more than the whole', async (t) => {
  const alone = { ...span('', 0, 4, 0), queueMs: 1, computeMs: 2 }
  t.match(requestTimes({ spans: [alone], leftOut: 0 }), {
    path: [],
    queueMs: 1,
    computeMs: 2,
    transferMs: 1,
    allMs: 4,
  })
  const many = requestTimes({ spans: [{ ...alone, queueMs: 9 }], leftOut: 0 })
  t.ok(Number.isNaN(many?.transferMs))
  t.equal(requestTimes({ spans: [], leftOut: 0 }), undefined)
  t.equal(waterfallRows({ spans: [span('', 0, 0, 0)], leftOut: 0 })[0]?.bar.all, 0)
})
