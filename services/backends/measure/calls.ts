/* Calls per second of Add on 16 floats: the engine against ONNX Runtime called on this thread. Run: node measure/calls.ts */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { createOnnxEngine } from '../dist/index.js'
import { buildAddModel, modelConfig, modelSource, stepRequest } from '../dist/testing/index.js'

const ROUNDS = 7

async function measure(name: string, calls: number, width: number, call: () => unknown) {
  for (let i = 0; i < calls / 4; i += 1) await call()
  const us: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now()
    for (let i = 0; i < calls; i += 1) await call()
    us.push(((performance.now() - start) / calls) * 1000)
  }
  us.sort((a, b) => a - b)
  const median = us[ROUNDS >> 1] ?? 0
  process.stdout.write(
    `${name} width ${width}: ${median.toFixed(1)} us (best ${us[0]?.toFixed(1)}), ${Math.round(1e6 / median)}/s\n`,
  )
}

async function measureWidth(width: number, calls: number) {
  const directory = mkdtempSync(join(tmpdir(), 'tutti-calls-'))
  const model = buildAddModel(width)
  writeFileSync(join(directory, 'model.onnx'), model)
  const data = new Float32Array(width).fill(1)
  const session = await InferenceSession.create(model, { intraOpNumThreads: 1 })
  await measure('session.run, this thread  ', calls, width, () =>
    session.run({
      a: new Tensor('float32', data, [1, width]),
      b: new Tensor('float32', data, [1, width]),
    }),
  )
  const require = createRequire(import.meta.url)
  const { binding } = require('onnxruntime-node/dist/binding.js')
  const raw = new binding.InferenceSession()
  raw.loadModel(model.buffer, 0, model.byteLength, { intraOpNumThreads: 1 })
  const value = { type: 'float32', data, dims: [1, width], location: 'cpu' }
  await measure('native binding, this thread', calls, width, () =>
    raw.run({ a: value, b: value }, { sum: null }, {}),
  )
  const io = (name: string) => ({ name, type: 'TYPE_FP32' as const, dims: [width] })
  const config = modelConfig([io('a'), io('b')], [io('sum')], { max_batch_size: 8 })
  const instances = 2
  const loaded = await createOnnxEngine().load(modelSource(directory, config), { instances })
  const bytes = new Uint8Array(data.buffer)
  const input = (name: string) => ({
    name,
    datatype: 'FP32' as const,
    shape: [1, width],
    data: bytes,
  })
  const request = stepRequest([input('a'), input('b')], { batchSize: 1 })
  const requests = [request]
  const sink = { send: () => {} }
  const { signal } = new AbortController()
  await measure('engine, 1 instance         ', calls, width, () =>
    loaded.execute(requests, sink, { instance: 0, signal }),
  )
  const eight = Array.from({ length: 8 }, () => request)
  await measure('engine, batch of 8 requests', calls, width, () =>
    loaded.execute(eight, sink, { instance: 0, signal }),
  )
  await measure('engine, 2 instances (pair) ', calls, width, () =>
    Promise.all([0, 1].map((instance) => loaded.execute(requests, sink, { instance, signal }))),
  )
  await loaded.close()
  rmSync(directory, { recursive: true })
}

await measureWidth(16, 8000)
await measureWidth(3 * 256 * 256, 400)
