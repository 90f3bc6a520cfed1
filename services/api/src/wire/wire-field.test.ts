import { ok } from 'node:assert/strict'
import t from 'tap'
import { z } from 'zod'
import { parseEdgeRoutes } from './edge-routes.ts'
import { parseServedByRouter, parseStepLoad } from './process-answers.ts'
import { parseStatisticsJson } from './statistics-wire.ts'
import { parseDescriptionJson } from './step-contract.ts'

const COUNT = 1000
const uint64 = '1'
const duration = { count: uint64, ns: uint64 }
const times = { computeInput: duration, computeInfer: duration, computeOutput: duration }
const statistics = {
  name: 'm',
  version: '1',
  lastInference: uint64,
  inferenceCount: uint64,
  executionCount: uint64,
  success: duration,
  fail: duration,
  queue: duration,
  cacheHit: duration,
  cacheMiss: duration,
  batchStats: [],
  ...times,
}
const model = { name: 'm', labels: [], versions: [], reason: '' }
const version = { version: 1, revision: 'r', state: 'READY', reason: '' }
const ofStep = (item: unknown) => ({ replica: 'r', models: many(item) })

function many(item: unknown): readonly unknown[] {
  return Array.from({ length: COUNT }, () => item)
}

/** Answers in each of which something is wrong a thousand times. */
const FLOODS: readonly (readonly [string, (json: unknown) => unknown, unknown])[] = [
  ...[0, {}, { name: 'm', versions: [] }, { ...model, labels: [1] }].flatMap((item) => [
    [`a step's models: ${JSON.stringify(item)}`, parseDescriptionJson, ofStep(item)] as const,
    ['their statistics', parseStatisticsJson, many(item)] as const,
    ['their load', parseStepLoad, { models: many(item) }] as const,
  ]),
  ['labels', parseDescriptionJson, ofStep({ ...model, labels: many(['', [0]]) })],
  ['no labels', parseDescriptionJson, ofStep({ ...model, labels: [['', many(0)]] })],
  ['configs', parseDescriptionJson, ofStep({ ...model, config: { max_batch_size: 'x' } })],
  ...[-1, 1.5, 2 ** 60, '1'].map(
    (number) =>
      [
        `versions: ${number}`,
        parseDescriptionJson,
        ofStep({ ...model, versions: many({ ...version, version: number }) }),
      ] as const,
  ),
  ...['-', '01', '9'.repeat(20), 1].map(
    (number) =>
      [
        `counts: ${number}`,
        parseStatisticsJson,
        many({ ...statistics, lastInference: number, queue: { count: number, ns: number } }),
      ] as const,
  ),
  ['what routers serve', parseServedByRouter, { models: [], accepted: many(1) }],
  ['their models', parseServedByRouter, { models: many(0), accepted: [] }],
  ...[0, -1].map(
    (number) =>
      [
        'their versions',
        parseServedByRouter,
        { models: [{ name: '', versions: many({ version: number }) }], accepted: [] },
      ] as const,
  ),
  ['routes', parseEdgeRoutes, { routes: many({}) }],
]

await t.test('of what is wrong very often, one issue is made', async (t) => {
  for (const [what, parse, json] of FLOODS) {
    try {
      parse(json)
      t.fail(`${what}: taken`)
    } catch (error) {
      const { cause, reason } = Object(error)
      t.equal(reason, 'MALFORMED_MESSAGE', what)
      ok(cause instanceof z.ZodError)
      t.equal(cause.issues.length, 1, what)
    }
  }
})
