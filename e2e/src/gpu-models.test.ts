// needs: python, torch
import { execFile } from 'node:child_process'
import { kill } from 'node:process'
import { promisify } from 'node:util'
import { until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { instancesOf, TORCH_FLAGS, withoutModule, withoutTorchCuda } from './gpu.ts'
import { seededRandom } from './hostile.ts'
import { scrape } from './metrics.ts'
import { restInfer, restOutputs } from './rest-infer.ts'
import { ROOT, type Serving, serve } from './serving.ts'
import { copyModels, tempFolder } from './temp-repository.ts'
import { fp32, type Tensor, toFloats } from './tensors.ts'
import { TORCH_PYTHON } from './triton-client.ts'

t.setTimeout(600_000)

const ON_GPU = 'instance_group { kind: KIND_GPU }'
const ON_CPU = 'instance_group { kind: KIND_CPU }'
const MIB = 2 ** 20
/** CUDA multiplies FP32 with TF32, 10 bits of mantissa: of the largest value. */
const TOLERANCE = 0.02

const skip = await withoutTorchCuda()

async function outputsOf(
  serving: Serving,
  model: string,
  input: Tensor,
): Promise<ReadonlyMap<string, Buffer>> {
  return restOutputs(await restInfer(serving, model, [input]))
}

/** A server of models of fixtures/gpu, in the Python with PyTorch. */
async function servePython(t: Test, models: readonly string[]): Promise<Serving> {
  const from = `${ROOT}model_repository/.variants/fixtures/gpu`
  return serve(t, { repositories: [await copyModels(t, models, { from })], flags: TORCH_FLAGS })
}

await t.test('a Python model leaves its outputs on the GPU', { skip }, async (t) => {
  const serving = await servePython(t, ['cuda_double', 'cuda_chain'])
  const values = [1, -2, 3.5, 100]
  const doubled = values.map((value) => 2 * value)
  const outputs = await outputsOf(serving, 'cuda_double', fp32('X', values))
  const wanted = Buffer.from(Float32Array.from(doubled).buffer)
  t.same(outputs.get('Y'), wanted)
  t.same(outputs.get('HALF'), Buffer.from(Float16Array.from(doubled).buffer))
  t.same(outputs.get('LONG'), Buffer.from(BigInt64Array.from(doubled, BigInt).buffer))
  // The lower half of these numbers in FP32 is 0.
  const upperHalves = doubled.map((_, i) => wanted.readUInt16LE(4 * i + 2))
  t.same(outputs.get('BRAIN'), Buffer.from(Uint16Array.from(upperHalves).buffer))

  const chained = await outputsOf(serving, 'cuda_chain', fp32('X', values))
  t.same([...toFloats({ data: chained.get('Y') ?? Buffer.of() })], [7, -11, 22, 601])
  const large = Float32Array.from({ length: MIB }, seededRandom(1))
  const { data } = fp32(
    'Y',
    large.map((value) => 2 * value),
  )
  t.ok((await outputsOf(serving, 'cuda_double', fp32('X', large))).get('Y')?.equals(data))
})

await t.test(
  'a Python model leaves what CuPy made on the GPU',
  { skip: skip || (await withoutModule(TORCH_PYTHON, 'cupy')) },
  async (t) => {
    const serving = await servePython(t, ['cupy_double'])
    const outputs = await outputsOf(serving, 'cupy_double', fp32('X', [1, 2]))
    t.same([...toFloats({ data: outputs.get('Y') ?? Buffer.of() })], [2, 4])
  },
)

/** A server of TorchScript models of gpu_models.py. */
async function serveTorch(t: Test, models: readonly string[], group: string): Promise<Serving> {
  const from = await tempFolder(t)
  await promisify(execFile)(TORCH_PYTHON ?? '', [`${ROOT}e2e/python/gpu_models.py`, from])
  const append = Object.fromEntries(models.map((model) => [model, group]))
  const repositories = [await copyModels(t, models, { from, append })]
  return serve(t, { repositories, flags: TORCH_FLAGS })
}

function pictures(batch: number, height: number, width: number): Tensor {
  const shape = [batch, 3, height, width]
  const count = shape.reduce((product, extent) => product * extent)
  return fp32('x__0', Float32Array.from({ length: count }, seededRandom(batch + width)), shape)
}

async function picturesOf(serving: Serving, input: Tensor): Promise<Float32Array> {
  const outputs = await outputsOf(serving, 'network', input)
  return toFloats({ data: outputs.get('y__0') ?? Buffer.of() })
}

/** Finds the largest difference, as a share of the largest value that is wanted. */
function worst(got: Float32Array, wanted: Float32Array): number {
  const largest = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  if (got.length !== wanted.length) return Number.POSITIVE_INFINITY
  return (
    got.reduce((most, value, i) => Math.max(most, Math.abs(value - (wanted[i] ?? 0))), 0) / largest
  )
}

await t.test('TorchScript on a GPU batches, in any shape', { skip }, async (t) => {
  const [gpu, cpu] = [
    await serveTorch(t, ['network'], ON_GPU),
    await serveTorch(t, ['network'], ON_CPU),
  ]
  for (const input of [pictures(1, 20, 24), pictures(3, 33, 17), pictures(8, 64, 64)]) {
    const difference = worst(await picturesOf(gpu, input), await picturesOf(cpu, input))
    t.ok(difference <= TOLERANCE, `${JSON.stringify(input.shape)}: ${difference}`)
  }
  const before = await scrape(gpu)
  const input = pictures(1, 40, 40)
  const wanted = await picturesOf(cpu, input)
  const all = await Promise.all(Array.from({ length: 8 }, () => picturesOf(gpu, input)))
  t.ok(all.every((got) => worst(got, wanted) <= TOLERANCE))
  const after = await scrape(gpu)
  const grown = (name: string): number => after.sum(name) - before.sum(name)
  t.equal(grown('nv_inference_count'), 8)
  t.ok(grown('nv_inference_exec_count') < 8, 'requests ran together')
})

function bytesOf({ buffer }: BigInt64Array<ArrayBuffer> | Float16Array<ArrayBuffer>): Buffer {
  return Buffer.from(buffer)
}

/** A BYTES tensor: each element after its length. */
function texts(...all: readonly string[]): Buffer {
  const parts = all.flatMap((text) => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(Buffer.byteLength(text))
    return [length, Buffer.from(text)]
  })
  return Buffer.concat(parts)
}

await t.test('TorchScript on a GPU takes other datatypes', { skip }, async (t) => {
  const models = ['double_long', 'double_half', 'upper']
  const serving = await serveTorch(t, models, ON_GPU)
  const longs = [1n, -5n, 2n ** 40n]
  const outputOf = async (model: string, datatype: Tensor['datatype'], data: Uint8Array) =>
    (await outputsOf(serving, model, { name: 'x__0', datatype, shape: [3], data })).get('y__0')
  t.same(
    await outputOf('double_long', 'INT64', bytesOf(BigInt64Array.from(longs))),
    bytesOf(BigInt64Array.from(longs, (value) => 2n * value)),
  )
  t.same(
    await outputOf('double_half', 'FP16', bytesOf(Float16Array.of(1, -0.5, 1000))),
    bytesOf(Float16Array.of(2, -1, 2000)),
  )
  t.same(await outputOf('upper', 'BYTES', texts('a', '', 'to b')), texts('A', '', 'TO B'))
})

await t.test('a request that the GPU’s memory does not hold fails alone', { skip }, async (t) => {
  const serving = await serveTorch(t, ['hungry'], ON_GPU)
  const take = (gib: number) => restInfer(serving, 'hungry', [fp32('x__0', [gib])])
  t.equal((await take(1)).status, 200)
  const refused = await take(100_000)
  t.equal(refused.status, 500)
  t.match(refused.body.toString(), /PyTorch execute failure.*out of memory/s)
  t.equal((await take(1)).status, 200)
})

await t.test('the memory of an instance that is killed is given back', { skip }, async (t) => {
  const observer = await serve(t, { repositories: [await copyModels(t, [])] })
  const usedBytes = async () => (await scrape(observer)).sum('nv_gpu_memory_used_bytes')
  const idleBytes = await usedBytes()
  const serving = await serveTorch(t, ['network'], ON_GPU)
  const input = pictures(1, 20, 24)
  const wanted = await picturesOf(serving, input)
  const busyBytes = await usedBytes()
  t.ok(busyBytes > idleBytes + 64 * MIB, `${busyBytes} bytes of ${idleBytes}`)
  for (let round = 0; round < 3; round++) {
    const instances = await instancesOf(serving)
    t.equal(instances.length, 1)
    for (const pid of instances) kill(pid, 'SIGKILL')
    await until('another one answers', async () => {
      const answer = await restInfer(serving, 'network', [input])
      if (answer.status !== 200) return false
      const got = toFloats({ data: restOutputs(answer).get('y__0') ?? Buffer.of() })
      return worst(got, wanted) <= TOLERANCE
    })
    t.notSame(await instancesOf(serving), instances)
  }
  await until('no more is used than before', async () => (await usedBytes()) < busyBytes + 64 * MIB)
  await serving.process.stop('SIGKILL')
  await until('nothing is used', async () => (await usedBytes()) < idleBytes + 64 * MIB)
})
