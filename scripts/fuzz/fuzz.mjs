import { Worker } from 'node:worker_threads'

const DEFAULT_MODULE = new URL('surfaces.mjs', import.meta.url)
const MOST_BYTES = 16 * 1024
/** For one input. Any that takes longer stalls whoever serves. */
const HANG_MS = 10_000
const HEAP_MB = 512
/** Different inputs with the same fault say nothing new. */
const MOST_FINDINGS = 20

/**
 * Gives random inputs to a surface, led by what of its code they reach.
 *
 * @param {{ name: string, seed: number, inputs: number, module?: URL, hangMs?: number }} o - `name` is a key of SURFACES of the
 *   module; `inputs` a number of them; `hangMs` the longest time for one.
 * @returns {Promise<{ counts?: { understood: number, refused: number, found: number, kept: number }, findings: { input: Buffer, text: string }[] }>}
 *   one finding for each text; `counts` is absent if an input hung or took all memory, which ends the run.
 */
export async function fuzz({ name, seed, inputs, module = DEFAULT_MODULE, hangMs = HANG_MS }) {
  const current = new SharedArrayBuffer(8 + MOST_BYTES)
  const progress = new Int32Array(current, 0, 2)
  const findings = new Map()
  const worker = new Worker(new URL('worker.mjs', import.meta.url), {
    workerData: { name, seed, inputs, current, module: module.href },
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  })
  const inWork = () => Buffer.from(new Uint8Array(current, 8, progress[1]))
  const find = (input, text) => {
    if (findings.size < MOST_FINDINGS && !findings.has(text)) findings.set(text, Buffer.from(input))
  }
  let counts
  worker.on('message', (message) => {
    if (message.found === undefined) counts = message.counts
    else find(message.found, message.text)
  })
  worker.on('error', (error) => find(inWork(), `ended its thread: ${error.message}`))
  let before = -1
  const watch = setInterval(() => {
    const now = Atomics.load(progress, 0)
    // Before its first input it loads what it fuzzes.
    if (now > 0 && now === before && counts === undefined) {
      find(inWork(), `took longer than ${hangMs} ms`)
      // Its end is awaited below.
      void worker.terminate()
    }
    before = now
  }, hangMs)
  await new Promise((resolve) => worker.once('exit', resolve))
  clearInterval(watch)
  return { counts, findings: [...findings].map(([text, input]) => ({ text, input })) }
}
