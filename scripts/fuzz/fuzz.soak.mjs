import { appendFileSync, mkdirSync } from 'node:fs'
import { env } from 'node:process'
import t from 'tap'
import { keepFinding } from './corpus.mjs'
import { fuzz } from './fuzz.mjs'
import { SURFACES } from './surfaces.mjs'

t.setTimeout(0)

/** For each surface. */
const INPUTS = Number(env.TUTTI_FUZZ_INPUTS ?? 1_000_000)
const SEED = Number(env.TUTTI_SEED ?? 1)
const ONLY = env.TUTTI_FUZZ_SURFACE?.split(',') ?? Object.keys(SURFACES)

const FOLDER = new URL('../../out/soak/', import.meta.url)
/** A line for each run. */
const REPORT = new URL('fuzz.jsonl', FOLDER)
mkdirSync(FOLDER, { recursive: true })

for (const name of ONLY) {
  await t.test(`${name}: ${INPUTS} inputs from seed ${SEED}`, async (test) => {
    const began = performance.now()
    const { counts, findings } = await fuzz({ name, seed: SEED, inputs: INPUTS })
    const seconds = Math.round((performance.now() - began) / 1000)
    appendFileSync(REPORT, `${JSON.stringify({ surface: name, seed: SEED, ...counts, seconds })}\n`)
    for (const { text, input } of findings) test.fail(`${keepFinding(name, input)}: ${text}`)
    test.ok(counts !== undefined, 'and the run came to its end')
  })
}
