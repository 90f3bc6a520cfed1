import { ServeError } from '@tutti/errors'
import { emptyModelConfig } from '@tutti/model-config'
import * as fc from 'fast-check'
import t from 'tap'
import { randomEnsemble } from '../testing/random-ensemble.ts'
import { findParts } from './find-parts.ts'
import {
  definePart,
  planPart,
  readPartText,
  readProgram,
  toPartText,
  toProgram,
} from './part-definition.ts'

const pinOf = ({ model }: { readonly model: string }) => ({ model, version: 1, revision: 'r' })

/** A part of a drawn graph, cut at random. */
function drawPart(seed: number) {
  const { plan, modelOf } = randomEnsemble(seed, 0, { hasDependencies: true, hasConditions: true })
  const [steps] = findParts(plan, (joined) => joined.length <= 2 + (seed % 4))
  const part = steps && definePart(plan, steps, pinOf)
  const configOf = ({ model }: { readonly model: string }) =>
    modelOf(model) ?? emptyModelConfig(model)
  return { plan, part, steps, configOf }
}

await t.test('the text of a part is the part, and it is planned as in the whole', (t) => {
  let parts = 0
  for (let seed = 0; seed < 300; seed += 1) {
    const { plan, part, steps = [], configOf } = drawPart(seed)
    if (part === undefined) continue
    parts += 1
    const read = readPartText(toPartText(part))
    t.same(read, part)
    const own = planPart(read, configOf)
    const of = steps.flatMap((step) => plan.steps[step] ?? [])
    const facts = (one: (typeof of)[number]) => [one.name, one.model, one.isBatched, one.constants]
    t.same(own.steps.map(facts), of.map(facts))
    t.ok(own.inputs.every(({ optional, isBatched }) => optional && isBatched !== undefined))
  }
  t.ok(parts > 100, `${parts} parts`)
  t.end()
})

await t.test('a request says in its second line what was skipped', (t) => {
  t.equal(toProgram('{}'), '{}')
  for (const skipped of [[], ['#1'], ['#1', '#12']]) {
    t.same(readProgram(toProgram('{"a":1}', skipped)), { text: '{"a":1}', skipped })
  }
  t.end()
})

await t.test('another text is refused, whatever it is', (t) => {
  const texts = Array.from({ length: 60 }, (_, seed) => drawPart(seed)).flatMap(
    ({ part, configOf }) => (part === undefined ? [] : [{ text: toPartText(part), configOf }]),
  )
  const place = fc.record({
    of: fc.constantFrom(...texts),
    at: fc.nat(),
    to: fc.oneof(fc.constantFrom('0', '1', '9', '-1', '""', '[', '}', 'null'), fc.string()),
  })
  const property = fc.property(place, ({ of: { text, configOf }, at, to }) => {
    const places = [...text.matchAll(/\d+|"[^"]*"|[[\]{}]/g)]
    const found = places[at % places.length]
    const from = found?.index ?? 0
    const changed = text.slice(0, from) + to + text.slice(from + (found?.[0].length ?? 0))
    try {
      planPart(readPartText(changed), configOf)
    } catch (error) {
      if (!(error instanceof ServeError)) throw error
    }
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 2000 }))
  const step = { model: 'm', version: 1, inputs: [], outputs: [] }
  const steps = [
    { ...step, name: 'a', after: [1] },
    { ...step, name: 'b', after: [0] },
  ]
  const graph = { steps, outputs: [], maxInFlightPerStep: 0 }
  const part = { ensemble: 'e', inputs: [], outputs: [], graph, pins: [] }
  t.throws(() => readPartText(toPartText(part)), {
    reason: 'MALFORMED_MESSAGE',
    message: 'part of a graph: graph.steps: 0, 1 wait for one another',
  })
  t.end()
})
