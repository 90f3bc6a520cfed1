// Fuzzes one surface in a thread: it can hang, or run out of memory, and the other thread still knows the input.
import { parentPort as port, workerData } from 'node:worker_threads'
import { readCorpus } from './corpus.mjs'
import { watchCoverage } from './coverage.mjs'
import { mutate } from './mutate.mjs'
import { seededRandom } from './random.mjs'
import { runInput } from './run-input.mjs'

/** Inputs for each look at the coverage, which takes as long as some dozens of them. */
const BATCH = 200
/** Inputs in memory; a new one then takes the place of any that is not committed. */
const MOST_KEPT = 2000

const PRODUCT = /\/services\/[^/]+\/dist\//

const { name, seed, inputs, current, module } = workerData
const { SURFACES } = await import(module)
const progress = new Int32Array(current, 0, 2)
const shown = new Uint8Array(current, 8)
const surface = SURFACES[name]
const random = seededRandom(seed)
const committed = surface.examples ?? readCorpus(name).map(({ bytes }) => bytes)
const corpus = [...committed]
const counts = { understood: 0, refused: 0, found: 0 }
const hasNewCoverage = watchCoverage((url) => url === module || PRODUCT.test(url))

async function run(input) {
  shown.set(input)
  progress[1] = input.length
  Atomics.add(progress, 0, 1)
  try {
    counts[await runInput(surface, input)]++
  } catch (error) {
    counts.found++
    port.postMessage({ found: input, text: String(error?.stack ?? error) })
  }
}

for (const input of committed) await run(input)
hasNewCoverage()
for (let done = 0; done < inputs; done += BATCH) {
  const batch = Array.from({ length: BATCH }, () => {
    return mutate(random.pick(corpus), { random, corpus, formats: surface.formats })
  })
  for (const input of batch) await run(input)
  if (!hasNewCoverage({ learn: false })) continue
  for (const input of batch) {
    // Their outcome is known.
    await runInput(surface, input).catch(() => {})
    if (hasNewCoverage()) keep(input)
  }
}
port.postMessage({ counts: { ...counts, kept: corpus.length - committed.length } })

function keep(input) {
  if (corpus.length < MOST_KEPT) corpus.push(input)
  else corpus[committed.length + random.below(MOST_KEPT - committed.length)] = input
}
