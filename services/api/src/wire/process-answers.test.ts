import { deepStrictEqual } from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import {
  parseServedByRouter,
  parseStartProgress,
  parseStepLoad,
  type ServedByRouter,
  type StepLoad,
} from './process-answers.ts'

const plain = { noNullPrototype: true }
const natural = fc.maxSafeNat()
const version = fc.record({ version: natural, revisions: fc.array(fc.string()) }, plain)
const served: fc.Arbitrary<ServedByRouter> = fc.record(
  {
    models: fc.array(fc.record({ name: fc.string(), versions: fc.array(version) }, plain)),
    accepted: fc.array(fc.string()),
  },
  plain,
)
const load: fc.Arbitrary<StepLoad> = fc.record(
  {
    models: fc.array(
      fc.record(
        {
          name: fc.string(),
          inFlight: natural,
          queued: natural,
          slots: natural,
          requests: natural,
        },
        { ...plain, requiredKeys: ['name', 'inFlight', 'queued', 'slots'] },
      ),
    ),
  },
  plain,
)

await t.test('answers survive the way through JSON, and newer members are dropped', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(served, load, (router, step) => {
        const wire: unknown = JSON.parse(JSON.stringify([router, step]))
        const [first, second]: readonly unknown[] = Array.isArray(wire) ? wire : []
        deepStrictEqual(parseServedByRouter({ ...Object(first), hue: 1 }), router)
        deepStrictEqual(parseStepLoad({ ...Object(second), hue: 1 }), step)
      }),
    ),
  )
})

await t.test('any JSON is taken or refused with the field', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.jsonValue(), (json) => {
        for (const parse of [parseServedByRouter, parseStepLoad, parseStartProgress]) {
          try {
            parse(json)
          } catch (error) {
            deepStrictEqual(Object(error).reason, 'MALFORMED_MESSAGE')
          }
        }
      }),
    ),
  )
  const model = { name: 'm', inFlight: 1, queued: -1, slots: 1 }
  t.throws(() => parseStepLoad({ models: [model] }), {
    code: 'INVALID_ARGUMENT',
    details: { field: 'models[0].queued' },
  })
  t.throws(() => parseServedByRouter({ models: [] }), {
    code: 'INVALID_ARGUMENT',
    details: { field: 'accepted' },
  })
})
