import { env } from 'node:process'
import t from 'tap'
import { readCorpus } from './corpus.mjs'
import { fuzz } from './fuzz.mjs'
import { mutate } from './mutate.mjs'
import { seededRandom } from './random.mjs'
import { runInput } from './run-input.mjs'
import { SURFACES } from './surfaces.mjs'

/** Beside the corpus; the soak takes a million. */
const INPUTS = 100
const SEED = Number(env.TUTTI_SEED ?? 1)

for (const [name, surface] of Object.entries(SURFACES)) {
  await t.test(`${name}: the corpus and random inputs are understood or refused`, async (test) => {
    const committed = readCorpus(name).map(({ bytes }) => bytes)
    const random = seededRandom(SEED)
    const { formats } = surface
    const changed = Array.from({ length: INPUTS }, () => {
      return mutate(random.pick(committed), { random, corpus: committed, formats })
    })
    const outcomes = new Set()
    for (const input of [...committed, ...changed]) {
      try {
        outcomes.add(await runInput(surface, input))
      } catch (error) {
        test.fail(`seed ${SEED}, ${input.toString('base64')}: ${error.stack}`)
      }
    }
    // Else mutations would not get past the first check.
    test.ok(outcomes.has('understood'), 'at least one is understood')
  })
}

await t.test('finds faults, hangs and exhausted memory, each with its input', async (test) => {
  const module = new URL('faulty-surfaces.mjs', import.meta.url)
  const find = async (name, hangMs) => await fuzz({ name, seed: 1, inputs: 20_000, module, hangMs })
  const deep = await find('deep', 60_000)
  test.match(deep.findings[0]?.text, /TypeError: four conditions/)
  test.ok(deep.counts.kept >= 3, `by way of its coverage: ${JSON.stringify(deep.counts)}`)
  for (const [name, hangMs, text] of [
    ['hang', 1000, /took longer than 1000 ms/],
    ['memory', 60_000, /^ended its thread: .*memory/],
  ]) {
    const { counts, findings } = await find(name, hangMs)
    test.equal(counts, undefined)
    test.match(findings.at(-1)?.text, text)
    test.ok(findings.at(-1)?.input.length > 0)
  }
})
