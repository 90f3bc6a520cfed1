import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createPythonEngine,
  modelConfig,
  modelSource,
  openSharedMemory,
  stepRequest,
} from '@tutti/backends/testing'
import { benchPython } from './bench-python.ts'
import { median, printTable, quantile } from './figures.ts'
import { ROOT } from './servers.ts'

const ROUNDS = 15
const WARM_UPS = 2
const SIZES = [
  ['64 B', 64, 300],
  ['786 KB', 786_432, 50],
  ['8 MB', 8 << 20, 10],
] as const
const MAPPED_BYTES = 32 << 20

const IDENTITY = `import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        out = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            out.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", COPY)]))
        return out
`

const port = (name: string) => ({ name, type: 'TYPE_UINT8' as const, dims: [-1] })

interface Way {
  readonly name: string
  readonly call: () => Promise<unknown>
}

/** A tensor through an identity Python model, against the raw round trip over shared memory. */
export async function benchPythonEngine(): Promise<void> {
  const { python } = benchPython()
  const opened = new AsyncDisposableStack()
  try {
    const raw = await startRaw(opened, python)
    const identity = await startEngine(opened, { python, copy: 'x', sharesMemory: true })
    const copying = await startEngine(opened, { python, copy: 'x.copy()', sharesMemory: true })
    const inline = await startEngine(opened, { python, copy: 'x', sharesMemory: false })
    for (const [size, bytes, calls] of SIZES) {
      const data = new Uint8Array(bytes).fill(7)
      const target = new Uint8Array(bytes)
      await measure(size, calls, [
        {
          name: 'raw: copied in and out',
          call: async () => {
            raw.mapping.copyIn(0, data)
            await raw.ask(0, bytes)
            raw.mapping.copyOut(0, target)
          },
        },
        {
          name: 'raw: copied in, there, and out to new memory',
          call: async () => {
            raw.mapping.copyIn(0, data)
            await raw.ask(1, bytes)
            raw.mapping.copyOut(MAPPED_BYTES / 2, Buffer.allocUnsafeSlow(bytes))
          },
        },
        { name: 'engine, the model gives its input back', call: () => identity(data) },
        { name: 'engine, the model gives a copy', call: () => copying(data) },
        { name: 'engine without shared memory', call: () => inline(data) },
      ])
    }
  } finally {
    await opened.disposeAsync()
  }
}

/** Ways take turns, so that what else the machine does hits all of them; each call is timed by itself. */
async function measure(size: string, calls: number, ways: readonly Way[]): Promise<void> {
  const taken = ways.map((): number[] => [])
  for (let round = -WARM_UPS; round < ROUNDS; round += 1) {
    for (const [i, { call }] of ways.entries()) {
      for (let n = 0; n < calls; n += 1) {
        const started = performance.now()
        await call()
        if (round >= 0) taken[i]?.push((performance.now() - started) * 1000)
      }
    }
  }
  const raw = { p10: quantile(taken[0] ?? [], 0.1), p50: median(taken[0] ?? []) }
  console.log(`\npython: ${size} there and back`)
  printTable([
    ['', 'p10 us', 'p50 us', 'p10 over raw', 'p50 over raw'],
    ...ways.map(({ name }, i) => {
      const [p10, p50] = [quantile(taken[i] ?? [], 0.1), median(taken[i] ?? [])]
      return [
        name,
        p10.toFixed(0),
        p50.toFixed(0),
        (p10 / raw.p10).toFixed(2),
        (p50 / raw.p50).toFixed(2),
      ]
    }),
  ])
}

async function startRaw(opened: AsyncDisposableStack, python: string) {
  const memory = openSharedMemory()
  if (typeof memory === 'string') throw new Error(memory)
  const mapping = memory.create(MAPPED_BYTES)
  const script = join(ROOT, 'bench', 'python', 'raw_round_trip.py')
  const child = spawn(python, [script, '3', mapping.path, String(MAPPED_BYTES)], {
    stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
  })
  opened.defer(async () => void child.kill())
  const control = child.stdio[3]
  if (!(control instanceof Socket)) throw new Error('the child has no control socket')
  await once(control, 'data')
  let answered: (() => void) | undefined
  control.on('data', () => answered?.())
  const ask = (operation: number, count: number): Promise<void> => {
    const message = Buffer.alloc(8)
    message.writeUInt32LE(operation, 0)
    message.writeUInt32LE(count, 4)
    control.write(message)
    return new Promise((resolve) => {
      answered = resolve
    })
  }
  return { mapping, ask }
}

async function startEngine(
  opened: AsyncDisposableStack,
  o: { readonly python: string; readonly copy: string; readonly sharesMemory: boolean },
): Promise<(data: Uint8Array) => Promise<unknown>> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
  opened.defer(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'model.py'), IDENTITY.replace('COPY', o.copy))
  const config = modelConfig([port('x')], [port('y')], { name: 'identity', backend: 'python' })
  const engine = createPythonEngine({ interpreter: o.python, sharesMemory: o.sharesMemory })
  const model = await engine.load(modelSource(folder, config), { instances: 1 })
  opened.defer(() => model.close())
  const { signal } = new AbortController()
  return (data) => {
    const input = { name: 'x', datatype: 'UINT8' as const, shape: [data.length], data }
    const sink = { send: () => {}, fail: () => {} }
    return model.execute([{ request: stepRequest([input]), sink }], { instance: 0, signal })
  }
}
