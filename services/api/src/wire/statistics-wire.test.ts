import { deepStrictEqual } from 'node:assert/strict'
import type { BatchStatistics, ModelStatistics } from '@tutti/model-config'
import * as fc from 'fast-check'
import t from 'tap'
import { mergeStatistics } from './merge-statistics.ts'
import { parseStatisticsJson, toStatisticsJson } from './statistics-wire.ts'

const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const plain = { noNullPrototype: true }
const duration = fc.record({ count: uint64, ns: uint64 }, plain)
const times = { computeInput: duration, computeInfer: duration, computeOutput: duration }

const statistics: fc.Arbitrary<ModelStatistics> = fc.record(
  {
    name: fc.constantFrom('a', 'b', 'a","1'),
    version: fc.constantFrom('1', '2'),
    lastInference: uint64,
    inferenceCount: uint64,
    executionCount: uint64,
    success: duration,
    fail: duration,
    queue: duration,
    ...times,
    cacheHit: duration,
    cacheMiss: duration,
    batchStats: fc.uniqueArray(
      fc.record({ batchSize: fc.bigInt({ min: 1n, max: 9n }), ...times }, plain),
      {
        selector: (batch) => batch.batchSize,
        maxLength: 4,
      },
    ),
  },
  plain,
)

await t.test('statistics survive the way through JSON', async (t) => {
  const property = fc.property(fc.array(statistics, { maxLength: 4 }), (sent) => {
    const json: unknown = JSON.parse(JSON.stringify(toStatisticsJson(sent)))
    deepStrictEqual(parseStatisticsJson(json), sent)
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 200 }))
})

const [example] = fc.sample(statistics, { numRuns: 1, seed: 1 })
if (example === undefined) throw new Error('no example')
const good = JSON.stringify(toStatisticsJson([{ ...example, name: 'm', version: '3' }]))

/** Good statistics but for one change. */
function bad(change: object): unknown {
  return [{ ...JSON.parse(good)[0], ...change }]
}

await t.test('an error names the field', async (t) => {
  const duration = { count: '1', ns: '2' }
  const cases: readonly (readonly [string, unknown])[] = [
    ['', {}],
    ['[0]', [null]],
    ['[0].version', bad({ version: 3 })],
    ...['-1', '01', '1.0', '', '1e3', ' 1', '18446744073709551616', '9'.repeat(5000), 1].map(
      (lastInference) => ['[0].lastInference', bad({ lastInference })] as const,
    ),
    ['[0].queue', bad({ queue: undefined })],
    ['[0].queue.ns', bad({ queue: { ...duration, ns: null } })],
    [
      '[0].batchStats[1].batchSize',
      bad({
        batchStats: [
          {
            batchSize: '1',
            computeInput: duration,
            computeInfer: duration,
            computeOutput: duration,
          },
          { computeInput: duration, computeInfer: duration, computeOutput: duration },
        ],
      }),
    ],
  ]
  t.doesNotThrow(() => parseStatisticsJson(bad({})))
  for (const [field, json] of cases) {
    const expected = { reason: 'MALFORMED_MESSAGE', details: { field }, message: 'step statistics' }
    t.throws(() => parseStatisticsJson(json), expected, field)
  }
})

function key(one: ModelStatistics): string {
  return JSON.stringify([one.name, one.version])
}

await t.test('replicas add up for each name and version', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.array(statistics, { maxLength: 4 }), { maxLength: 4 }), (replicas) => {
      const all = replicas.flat()
      const merged = mergeStatistics(replicas)
      t.same(merged.map(key), [...new Set(all.map(key))])
      for (const one of merged) {
        const parts = all.filter((part) => key(part) === key(one))
        t.equal(one.inferenceCount, sum(parts.map((part) => part.inferenceCount)))
        t.equal(one.queue.ns, sum(parts.map((part) => part.queue.ns)))
        t.equal(one.cacheMiss.count, sum(parts.map((part) => part.cacheMiss.count)))
        t.ok(parts.every((part) => part.lastInference <= one.lastInference))
        t.ok(parts.some((part) => part.lastInference === one.lastInference))
        const batches = parts.flatMap((part) => part.batchStats)
        for (const batch of one.batchStats) {
          const same = batches.filter(({ batchSize }) => batchSize === batch.batchSize)
          t.equal(batch.computeInfer.count, sum(same.map(({ computeInfer }) => computeInfer.count)))
        }
      }
    }),
    { numRuns: 100 },
  )
})

function batch(batchSize: bigint): BatchStatistics {
  const one = { count: 1n, ns: 2n }
  return { batchSize, computeInput: one, computeInfer: one, computeOutput: one }
}

await t.test('batch sizes of several replicas come in ascending order, each once', async (t) => {
  const sizes = [
    [8n, 1n],
    [4n, 8n],
  ]
  const [merged] = mergeStatistics(
    sizes.map((replica) => [{ ...example, batchStats: replica.map(batch) }]),
  )
  t.same(
    merged?.batchStats.map(({ batchSize, computeInput }) => [batchSize, computeInput.count]),
    [
      [1n, 1n],
      [4n, 1n],
      [8n, 2n],
    ],
  )
})

await t.test('a single replica’s statistics stay as they are', async (t) => {
  t.equal(mergeStatistics([[example]])[0], example)
  t.same(mergeStatistics([]), [])
})

function sum(values: readonly bigint[]): bigint {
  return values.reduce((a, b) => a + b, 0n)
}
