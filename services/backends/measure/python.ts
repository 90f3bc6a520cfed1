/*
 * Identity round trips through the Python engine against the raw round trip over shared memory.
 * Run: node measure/python.ts [PYTHON]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createPythonEngine } from '../dist/index.js'
import { openSharedMemory } from '../dist/python/shared-memory.js'
import { modelConfig, modelSource, stepRequest } from '../dist/testing/index.js'

const PYTHON = process.argv[2] ?? 'python3'
const ROUNDS = 15
const SIZES = { '64 B': 64, '786 KB': 786_432, '8 MB': 8 << 20 }

const IDENTITY = `import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        out = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            out.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", COPY)]))
        return out
`

const port = (tensor: string) => ({ name: tensor, type: 'TYPE_UINT8' as const, dims: [-1] })

type Way = readonly [name: string, call: () => Promise<unknown>]

/** Ways take turns, so that what else the machine does hits all of them; each call is timed by itself. */
async function measure(size: string, calls: number, ways: readonly Way[]): Promise<void> {
  const us = ways.map((): number[] => [])
  for (let round = -2; round < ROUNDS; round += 1) {
    for (const [i, [, call]] of ways.entries()) {
      for (let n = 0; n < calls; n += 1) {
        const start = performance.now()
        await call()
        if (round >= 0) us[i]?.push((performance.now() - start) * 1000)
      }
    }
  }
  for (const [i, [name]] of ways.entries()) {
    const sorted = us[i]?.toSorted((a, b) => a - b) ?? []
    const at = (part: number): string => (sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(0)
    process.stdout.write(`${size.padEnd(7)} ${name.padEnd(44)} p10 ${at(0.1)}, p50 ${at(0.5)} us\n`)
  }
}

async function startRaw(size: number) {
  const memory = openSharedMemory()
  if (typeof memory === 'string') throw new Error(memory)
  const mapping = memory.create(size)
  const script = fileURLToPath(new URL('raw-round-trip.py', import.meta.url))
  const child = spawn(PYTHON, [script, '3', mapping.path, String(size)], {
    stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
  })
  const control = child.stdio[3]
  if (!(control instanceof Socket)) throw new Error('no control socket')
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
  return { mapping, ask, stop: () => child.kill() }
}

async function startEngine(directory: string, name: string, copy: string, sharesMemory: boolean) {
  const folder = join(directory, name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'model.py'), IDENTITY.replace('COPY', copy))
  const config = modelConfig([port('x')], [port('y')], { name, backend: 'python' })
  const engine = createPythonEngine({ interpreter: PYTHON, sharesMemory })
  const model = await engine.load(modelSource(folder, config), { instances: 1 })
  const { signal } = new AbortController()
  const call = (data: Uint8Array) => {
    const request = stepRequest([{ name: 'x', datatype: 'UINT8', shape: [data.length], data }])
    return model.execute([request], { send: () => {} }, { instance: 0, signal })
  }
  return { call, close: () => model.close() }
}

const directory = mkdtempSync(join(tmpdir(), 'tutti-measure-'))
const total = 32 << 20
const raw = await startRaw(total)
const identity = await startEngine(directory, 'identity', 'x', true)
const copying = await startEngine(directory, 'copying', 'x.copy()', true)
const inline = await startEngine(directory, 'inline', 'x', false)
for (const [size, bytes] of Object.entries(SIZES)) {
  const data = new Uint8Array(bytes).fill(7)
  const target = new Uint8Array(bytes)
  await measure(size, bytes > 1e6 ? 10 : bytes > 1000 ? 50 : 300, [
    ['raw: the message alone', () => raw.ask(0, bytes)],
    [
      'raw: copied in and out',
      async () => {
        raw.mapping.copyIn(0, data)
        await raw.ask(0, bytes)
        raw.mapping.copyOut(0, target)
      },
    ],
    [
      'raw: copied in, there, and out to new memory',
      async () => {
        raw.mapping.copyIn(0, data)
        await raw.ask(1, bytes)
        raw.mapping.copyOut(total / 2, Buffer.allocUnsafeSlow(bytes))
      },
    ],
    ['engine, the model gives its input back', () => identity.call(data)],
    ['engine, the model gives a copy', () => copying.call(data)],
    ['engine without shared memory', () => inline.call(data)],
  ])
}
raw.stop()
await Promise.all([identity.close(), copying.close(), inline.close()])
rmSync(directory, { recursive: true })
