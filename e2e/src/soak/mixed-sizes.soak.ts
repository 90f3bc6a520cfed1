// needs: python
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { InferenceClient } from '@tutti/protocol/client'
import t from 'tap'
import { ROOT, serve } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { PYTHON } from '../triton-client.ts'

t.setTimeout(0)

const MINUTES = Number(process.env['TUTTI_SOAK_MINUTES'] ?? 10)
const MEGABYTE = 1e6
const CLIENTS = 16
/** Sizes are spread evenly over their logarithm up to this. */
const LARGEST_BYTES = 8 * MEGABYTE
const ELEMENT_BYTES = 4
/** Requests and answers of all clients, if all are as large as can be. */
const IN_FLIGHT_BYTES = 2 * CLIENTS * LARGEST_BYTES
const BOUND_BYTES = 1.5 * IN_FLIGHT_BYTES + 200 * MEGABYTE
const SAMPLE_MS = 1000
/** Limit of the growth of the second half of the time over the first, without the first tenth. */
const GROWTH_BYTES = 48 * MEGABYTE

/** Resident memory of a process and its descendants; what n processes share counts an nth in each. */
async function treeBytes(pid: number): Promise<number> {
  const parents = new Map<number, number>()
  for (const name of await readdir('/proc')) {
    const status = /^\d+$/.test(name) ? await readIfThere(`/proc/${name}/status`) : ''
    parents.set(Number(name), Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]))
  }
  const tree = [pid]
  for (const one of tree) for (const [child, of] of parents) if (of === one) tree.push(child)
  let bytes = 0
  for (const one of tree) {
    const rollup = await readIfThere(`/proc/${one}/smaps_rollup`)
    bytes += Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * 1024
  }
  return bytes
}

const megabytes = (bytes: number): string => `${Math.round(bytes / MEGABYTE)} MB`

/** Processes end while one looks at them. */
const readIfThere = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '')

/** Asks for one tensor after the other. @returns how many. @throws Error if an answer is not the right one. */
async function askUntil(address: string, endsAt: number): Promise<number> {
  const client = new InferenceClient({ address })
  let asked = 0
  try {
    for (; performance.now() < endsAt; asked += 1) {
      const length = Math.max(1, Math.round((LARGEST_BYTES / ELEMENT_BYTES) ** Math.random()))
      const values = new Int32Array(length).fill(1 + (asked % 1000))
      const data = new Uint8Array(values.buffer)
      const inputs = [{ name: 'X', datatype: 'INT32' as const, shape: [length], data }]
      const { outputs } = await client.infer({ modelName: 'py_negate', inputs })
      const want = new Uint8Array(values.map((value) => -value).buffer)
      const isRight = Buffer.compare(outputs[0]?.data ?? Buffer.alloc(0), want) === 0
      if (!isRight) throw new Error(`a wrong answer to ${length} integers`)
    }
  } finally {
    client.close()
  }
  return asked
}

await t.test(
  `memory stays flat over ${MINUTES} minutes of mixed sizes`,
  { skip: PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set' },
  async (test) => {
    const from = `${ROOT}model_repository/.variants/fixtures/python`
    const repository = await copyModels(test, ['py_negate'], { from })
    const flags = [`--backend-config=python,interpreter=${PYTHON}`]
    const serving = await serve(test, { repositories: [repository], flags })
    const endsAt = performance.now() + MINUTES * 60_000
    const address = `127.0.0.1:${serving.grpcPort}`
    const asking = Promise.all(Array.from({ length: CLIENTS }, () => askUntil(address, endsAt)))
    const samples: number[] = []
    while (performance.now() < endsAt) {
      samples.push(await treeBytes(serving.process.pid))
      await Promise.race([sleep(SAMPLE_MS), asking])
    }
    const asked = (await asking).reduce((sum, count) => sum + count, 0)
    const warm = samples.slice(Math.ceil(samples.length / 10))
    const half = Math.ceil(warm.length / 2)
    const [first, second] = [Math.max(...warm.slice(0, half)), Math.max(...warm.slice(half))]
    test.comment(`${asked} requests; at most ${megabytes(first)}, then ${megabytes(second)}`)
    test.ok(Math.max(first, second) < BOUND_BYTES, `within ${megabytes(BOUND_BYTES)}`)
    test.ok(second - first < GROWTH_BYTES, 'and flat')
  },
)
