// needs: python, torch
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { repositoryIndex } from './control-churn.ts'
import { ACCELERATOR, TORCH_FLAGS, withoutGpu, withoutTorchCuda } from './gpu.ts'
import { seededRandom } from './hostile.ts'
import { scrape } from './metrics.ts'
import { restCall } from './rest-call.ts'
import { restInfer, restOutputs } from './rest-infer.ts'
import { FACE, FACE_MODELS, OCR } from './seed-systems.ts'
import { ROOT, type Serving, serve } from './serving.ts'
import { copyModels, tempFolder } from './temp-repository.ts'
import { fp32, type Tensor, toFloats } from './tensors.ts'
import { PYTHON, PYTHON_FLAGS } from './triton-client.ts'

t.setTimeout(600_000)

const run = promisify(execFile)

const FACE_NETWORK = 'infer_face_restoration_v2.1'
/** CUDA multiplies FP32 with TF32, 10 bits of mantissa: of the largest value of an output. */
const TOLERANCE = 0.02

const PROVIDER = `${ROOT}node_modules/onnxruntime-node/bin/napi-v6/${process.platform}/${process.arch}/libonnxruntime_providers_cuda.so`
const withoutProvider = !existsSync(PROVIDER) && `ONNX Runtime has no CUDA provider: no ${PROVIDER}`
/** Values between 0 and 1 that are the same in every run. */
function noise(name: string, shape: readonly number[]): Tensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  return fp32(name, Float32Array.from({ length: count }, seededRandom(1)), shape)
}

async function inferAt(serving: Serving, model: string, input: Tensor) {
  const outputs = restOutputs(await restInfer(serving, model, [input]))
  return new Map([...outputs].map(([name, data]) => [name, toFloats({ data })]))
}

/** Serves a model twice, on the GPU and on the CPU, and compares what both say. */
async function compare(
  t: Test,
  o: { readonly from: string; readonly input: Tensor; readonly model: string },
): Promise<void> {
  const { from, input, model } = o
  const repositories = [await copyModels(t, [model], { from })]
  const gpu = await serve(t, { repositories, flags: [...TORCH_FLAGS, ACCELERATOR] })
  const cpu = await serve(t, { repositories, flags: TORCH_FLAGS })
  const kinds = await Promise.all([gpu, cpu].map((serving) => kindOf(serving, model)))
  t.same(kinds, ['KIND_GPU', 'KIND_CPU'])
  const wanted = await inferAt(cpu, model, input)
  const got = await inferAt(gpu, model, input)
  t.same([...got.keys()], [...wanted.keys()])
  for (const [name, values] of wanted) {
    const others = got.get(name) ?? new Float32Array()
    t.equal(others.length, values.length, name)
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
    const difference = values.reduce(
      (most, value, i) => Math.max(most, Math.abs(value - (others[i] ?? Number.NaN))),
      0,
    )
    t.ok(difference <= TOLERANCE * largest, `${name}: ${difference} of ${largest}`)
  }
}

interface Group {
  readonly kind: string
  readonly gpus: readonly number[]
}

async function groupOf(serving: Serving, model: string): Promise<Group | undefined> {
  const answer = await restCall(serving.httpPort, 'GET', `/v2/models/${model}/config`)
  const config: { readonly instance_group: readonly Group[] } = JSON.parse(answer.body.toString())
  return config.instance_group[0]
}

async function kindOf(serving: Serving, model: string): Promise<unknown> {
  return (await groupOf(serving, model))?.kind
}

const NETWORKS = [
  { model: FACE_NETWORK, from: OCR, input: noise('input__0', [1, 3, 512, 512]) },
  { model: 'text_detection', from: OCR, input: noise('input_images:0', [1, 320, 320, 3]) },
  { model: 'text_recognition', from: OCR, input: noise('INPUT__0', [1, 1, 32, 100]) },
] as const

for (const network of NETWORKS) {
  await t.test(
    `on a GPU ${network.model} (ONNX) says what it says on the CPU`,
    { skip: withoutGpu || withoutProvider },
    (t) => compare(t, network),
  )
}

await t.test(
  `on a GPU ${FACE_NETWORK} (TorchScript) says what it says on the CPU`,
  { skip: await withoutTorchCuda() },
  (t) =>
    compare(t, { model: FACE_NETWORK, from: FACE, input: noise('input__0', [1, 3, 512, 512]) }),
)

await t.test(
  'the face system on a GPU says what it says on the CPU',
  { skip: await withoutTorchCuda() },
  async (t) => {
    const repositories = [await copyModels(t, FACE_MODELS, { from: FACE })]
    const flags = [...TORCH_FLAGS, ACCELERATOR]
    const gpu = await serve(t, { repositories, flags })
    const cpu = await serve(t, { repositories, flags: TORCH_FLAGS })
    const random = seededRandom(2)
    const data = Uint8Array.from({ length: 256 * 256 * 3 }, () => Math.floor(256 * random()))
    const image = { name: 'raw_image', datatype: 'UINT8', shape: [256, 256, 3], data } as const
    const [got, wanted] = await Promise.all(
      [gpu, cpu].map(async (serving) => {
        const answer = await restInfer(serving, 'ens_face_restoration_v2.1', [image])
        return restOutputs(answer).get('image_out') ?? Buffer.of()
      }),
    )
    t.equal(got?.length, wanted?.length)
    const differences = Array.from(wanted ?? [], (level, i) => Math.abs(level - (got?.[i] ?? 999)))
    const largest = differences.reduce((most, value) => Math.max(most, value), 0)
    t.ok(differences.length > 0 && largest <= 255 * TOLERANCE, `${largest} of 255 levels`)
  },
)

await t.test('a GPU that is not there is not executed on', { skip: withoutGpu }, async (t) => {
  const from = `${ROOT}model_repository/.variants/fixtures/python`
  const append = { py_negate: 'instance_group { gpus: 99 }' }
  const repositories = [await copyModels(t, ['py_negate'], { from, append })]
  const serving = await serve(t, { repositories, flags: PYTHON_FLAGS })
  const [model] = await repositoryIndex(serving)
  t.match(
    model?.reason,
    /specifies invalid or unsupported gpu id 99\. GPUs with .* are: 0.*CUDA devices: \d/s,
  )
})

await t.test('the metrics have those of the GPU', { skip: withoutGpu }, async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, [], { from: OCR })] })
  const scraped = await scrape(serving)
  t.ok(scraped.sum('nv_gpu_memory_total_bytes') > 2 ** 30)
  t.ok(scraped.sum('nv_gpu_memory_used_bytes') > 0)
  t.ok(scraped.sum('nv_gpu_power_limit') > 10)
  t.ok(scraped.sum('nv_gpu_power_usage') > 0)
  t.ok(scraped.value('nv_gpu_utilization') >= 0)
  await until('energy is counted', async () => {
    return (await scrape(serving)).sum('nv_energy_consumption') > 0
  })
})

/** Why a model is not served. */
async function refusal(t: Test, from: string, flags: readonly string[]): Promise<string> {
  const repository = await copyModels(t, [FACE_NETWORK], { from })
  // A driver that is there offers nothing then.
  const env = { CUDA_VISIBLE_DEVICES: '-1' }
  const serving = await serve(t, { repositories: [repository], flags, env })
  const [model] = await repositoryIndex(serving)
  return model?.reason ?? ''
}

for (const [format, from] of [
  ['ONNX', OCR],
  ['TorchScript', FACE],
] as const) {
  await t.test(`a ${format} model that was given no usable device is not served`, async (t) => {
    const reason = await refusal(t, from, [ACCELERATOR])
    t.match(
      reason,
      `instance group ${FACE_NETWORK} of model ${FACE_NETWORK} has kind KIND_GPU but no GPUs are available`,
    )
    t.match(reason, /accelerator nvidia\.com\/gpu=1, .*no CUDA driver: libcuda\.so\.1: /s)
    t.match(reason, "want a node with NVIDIA's driver")
  })
}

await t.test('another vendor’s devices are no CUDA: they are told of in the refusal', async (t) => {
  const reason = await refusal(t, OCR, ['--accelerator=amd.com/gpu=1'])
  t.match(reason, /no GPUs are available \(accelerator amd\.com\/gpu=1, /)
})

/** For tap's `skip`: there is nothing to build a driver with. */
const withoutCompiler: string | false = await run('cc', ['--version']).then(
  () => false,
  () => 'there is no C compiler (cc)',
)

/** Variables of a process whose CUDA driver says that it has so many GPUs. Nothing can be executed on them. */
async function pretendGpus(t: Test, count: number): Promise<Readonly<Record<string, string>>> {
  const folder = await tempFolder(t)
  const source = join(folder, 'driver.c')
  const text = `
int cuInit(unsigned int flags) { return 0; }
int cuDeviceGetCount(int *count) { *count = ${count}; return 0; }
int cuGetErrorString(int code, const char **text) { *text = "unknown"; return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = ${count}; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, unsigned long *device) { *device = i; return 0; }
int nvmlDeviceGetUUID(unsigned long device, char *uuid, unsigned length) { uuid[0] = 'a' + device; return 0; }
int nvmlDeviceGetUtilizationRates(unsigned long device, unsigned *rates) { return 3; }
int nvmlDeviceGetMemoryInfo(unsigned long device, unsigned long *bytes) { bytes[0] = 1000; return 0; }
int nvmlDeviceGetPowerUsage(unsigned long device, unsigned *milliwatts) { return 3; }
int nvmlDeviceGetPowerManagementLimit(unsigned long device, unsigned *milliwatts) { return 3; }
int nvmlDeviceGetTotalEnergyConsumption(unsigned long device, unsigned long *millijoules) { return 3; }
`
  await writeFile(source, text)
  const driver = join(folder, 'libcuda.so.1')
  await run('cc', ['-shared', '-fPIC', '-o', driver, source])
  await symlink(driver, join(folder, 'libnvidia-ml.so.1'))
  return { LD_LIBRARY_PATH: folder }
}

const ON_TWO = 'instance_group { kind: KIND_GPU }'
const ON_THE_SECOND = 'instance_group { gpus: 1 }'

for (const [what, group, flags, wanted, totalBytes] of [
  ['all of them', ON_TWO, [], [0, 1], 2000],
  ['no more of them than it was given', ON_TWO, [ACCELERATOR], [0], 2000],
  [
    'the one that a group names, without a kind too',
    ON_THE_SECOND,
    ['--allow-gpu-metrics=false'],
    [1],
    0,
  ],
] as const) {
  await t.test(
    `a Python model has of two GPUs ${what}`,
    { skip: withoutCompiler || (PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set') },
    async (t) => {
      const model = 'py_negate'
      const from = `${ROOT}model_repository/.variants/fixtures/python`
      const serving = await serve(t, {
        repositories: [await copyModels(t, [model], { from, append: { [model]: group } })],
        flags: [...PYTHON_FLAGS, ...flags],
        env: await pretendGpus(t, 2),
      })
      const placed = await groupOf(serving, model)
      t.same([placed?.kind, placed?.gpus], ['KIND_GPU', wanted])
      t.equal((await scrape(serving)).sum('nv_gpu_memory_total_bytes'), totalBytes)
    },
  )
}
