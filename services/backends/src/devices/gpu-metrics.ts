import type { ModelMetricFamily } from '../model-metrics.ts'
import { callNative, loadLibrary, type NativeCall, type NativeLibrary } from './native-library.ts'

/** NVIDIA's management library, which a container with a GPU is given beside the driver's. */
const LIBRARY = 'libnvidia-ml.so.1'
const SUCCESS = 0
/** NVML_DEVICE_UUID_V2_BUFFER_SIZE */
const UUID_BYTES = 96
/** Most time of a read. A driver that hangs loses its families in a scrape, but does not delay the scrape. */
const LONGEST_READ_MS = 1000

/** A family, and the figure of NVML that it shows. Names, words and units are Triton's (triton-semantics 4.11). */
interface GpuFamily extends Omit<ModelMetricFamily, 'series'> {
  /** Gets the figures of a device. */
  readonly call: string
  /** Integers that the call writes, of 32 or 64 bits. */
  readonly result: () => Uint32Array | BigUint64Array
  /** Index of the figure among these integers. */
  readonly index: number
  /** Factor from the integer to the unit of the family. */
  readonly scale: number
}

const one32 = (): Uint32Array => new Uint32Array(1)
/** nvmlUtilization_t: gpu and memory, in percent. */
const UTILIZATION = { call: 'nvmlDeviceGetUtilizationRates', result: () => new Uint32Array(2) }
/** nvmlMemory_t: total, free and used bytes. */
const MEMORY = { call: 'nvmlDeviceGetMemoryInfo', result: () => new BigUint64Array(3), scale: 1 }
const GAUGE = { type: 'gauge', index: 0, scale: 1 / 1000 } as const

const FAMILIES: readonly GpuFamily[] = [
  {
    ...GAUGE,
    ...UTILIZATION,
    name: 'nv_gpu_utilization',
    help: 'GPU utilization rate [0.0 - 1.0)',
    scale: 1 / 100,
  },
  {
    ...GAUGE,
    ...MEMORY,
    name: 'nv_gpu_memory_total_bytes',
    help: 'GPU total memory, in bytes',
  },
  {
    ...GAUGE,
    ...MEMORY,
    name: 'nv_gpu_memory_used_bytes',
    help: 'GPU used memory, in bytes',
    index: 2,
  },
  {
    ...GAUGE,
    name: 'nv_gpu_power_usage',
    help: 'GPU power usage in watts',
    call: 'nvmlDeviceGetPowerUsage',
    result: one32,
  },
  {
    ...GAUGE,
    name: 'nv_gpu_power_limit',
    help: 'GPU power management limit in watts',
    call: 'nvmlDeviceGetPowerManagementLimit',
    result: one32,
  },
  {
    ...GAUGE,
    name: 'nv_energy_consumption',
    help: 'GPU energy consumption in joules since the Triton Server started',
    type: 'counter',
    call: 'nvmlDeviceGetTotalEnergyConsumption',
    result: () => new BigUint64Array(1),
  },
]

/** Names of the GPU metric families, in the order of a scrape. */
export const GPU_FAMILY_NAMES: readonly string[] = FAMILIES.map(({ name }) => name)

interface Gpu {
  /** NVML's handle. */
  readonly device: bigint
  readonly uuid: string
  /** Values of the counters when they were first read: they count from there. */
  readonly first: Map<string, number>
}

/** Triton's metrics of the GPUs that this container has. The first `read` loads the library, and counters begin there. */
export class GpuMetrics {
  readonly #library: string
  #opened: Promise<() => Promise<ModelMetricFamily[]>> | undefined
  #reading: Promise<ModelMetricFamily[]> | undefined

  /** @param library - a name that the loader finds, or a path. */
  constructor(library = LIBRARY) {
    this.#library = library
  }

  /**
   * Reads the metric families for a scrape. There are none without a library or a GPU, or while the driver does not answer. A
   * value that a GPU does not give, such as the utilization of a divided one, has no series.
   */
  async read(): Promise<ModelMetricFamily[]> {
    this.#opened ??= openLibrary(this.#library)
    // Scrapes share a reading that goes on: a driver that hangs has one call of ours, not one of each scrape.
    this.#reading ??= this.#opened
      .then((readNow) => readNow())
      .finally(() => (this.#reading = undefined))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<ModelMetricFamily[]>((resolve) => {
      timer = setTimeout(resolve, LONGEST_READ_MS, [])
    })
    return Promise.race([this.#reading, late]).finally(() => clearTimeout(timer))
  }
}

async function openLibrary(name: string): Promise<() => Promise<ModelMetricFamily[]>> {
  try {
    const library = loadLibrary(name)
    const gpus = await findGpus(library)
    const families = FAMILIES.map((family) => ({
      ...family,
      read: library.func(`int ${family.call}(uintptr_t, void*)`),
    }))
    if (gpus.length > 0) return () => Promise.all(families.map((one) => readFamily(one, gpus)))
  } catch {
    // A machine without a GPU has no library. Whether models find their devices is told when they are loaded.
  }
  return () => Promise.resolve([])
}

/** @throws Error if the library is not NVML, or its driver does not work. */
async function findGpus(library: NativeLibrary): Promise<Gpu[]> {
  if ((await callNative(library.func('int nvmlInit_v2()'))) !== SUCCESS) return []
  const counted = one32()
  await callNative(library.func('int nvmlDeviceGetCount_v2(void*)'), counted)
  const byIndex = library.func('int nvmlDeviceGetHandleByIndex_v2(uint32_t, void*)')
  const uuidOf = library.func('int nvmlDeviceGetUUID(uintptr_t, void*, uint32_t)')
  const gpus: Gpu[] = []
  for (let i = 0; i < (counted[0] ?? 0); i++) {
    const [handle, uuid] = [new BigUint64Array(1), Buffer.alloc(UUID_BYTES)]
    // A GPU that is lost while others work has none of both.
    if ((await callNative(byIndex, i, handle)) !== SUCCESS) continue
    const device = handle[0] ?? 0n
    if ((await callNative(uuidOf, device, uuid, UUID_BYTES)) !== SUCCESS) continue
    gpus.push({
      device,
      uuid: uuid.toString('latin1', 0, uuid.indexOf(0)),
      first: new Map(),
    })
  }
  return gpus
}

async function readFamily(
  family: GpuFamily & { readonly read: NativeCall },
  gpus: readonly Gpu[],
): Promise<ModelMetricFamily> {
  const { name, help, type, read, index, scale } = family
  const series: ModelMetricFamily['series'][number][] = []
  for (const { device, uuid, first } of gpus) {
    const result = family.result()
    if ((await callNative(read, device, result)) !== SUCCESS) continue
    const value = Number(result[index] ?? 0) * scale
    if (type === 'counter' && !first.has(name)) first.set(name, value)
    series.push({ labels: [['gpu_uuid', uuid]], value: value - (first.get(name) ?? 0) })
  }
  return { name, help, type, series }
}
