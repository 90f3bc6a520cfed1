import t from 'tap'
import { GpuMetrics } from './gpu-metrics.ts'
import { compileLibrary, withoutCompiler } from './testing/compile-library.ts'

/** NVML's names, with what two GPUs say; the second is a part of one, which tells its memory alone. */
const NVML = `
#include <stdint.h>
#include <string.h>
#include <unistd.h>
enum { NOT_SUPPORTED = 3 };
static unsigned energy = 5000;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, uintptr_t *device) { *device = 0xffffffff00000000 + i; return 0; }
int nvmlDeviceGetUUID(uintptr_t device, char *uuid, unsigned length) {
  if (length < 96) return 7;
  strcpy(uuid, device & 1 ? "MIG-b" : "GPU-a");
  return 0;
}
int nvmlDeviceGetMemoryInfo(uintptr_t device, uint64_t *bytes) {
  bytes[0] = 85899345920, bytes[1] = 85899345920 - 1024, bytes[2] = 1024;
  return 0;
}
#define TELL(name, type, value) int name(uintptr_t device, type *out) { \\
  if (device & 1) return NOT_SUPPORTED; value; return 0; }
TELL(nvmlDeviceGetUtilizationRates, unsigned, (out[0] = 37, out[1] = 99))
TELL(nvmlDeviceGetPowerUsage, unsigned, *out = 71500)
TELL(nvmlDeviceGetPowerManagementLimit, unsigned, *out = 700000)
TELL(nvmlDeviceGetTotalEnergyConsumption, uint64_t, *out = energy += 2500)
`

/** Its families, each with its values by GPU. */
async function valuesOf(metrics: GpuMetrics) {
  const families = await metrics.read()
  return Object.fromEntries(
    families.map(({ name, series }) => [
      name,
      Object.fromEntries(series.map(({ labels, value }) => [labels.flat().join('='), value])),
    ]),
  )
}

await t.test('each GPU has the figures that it tells', { skip: withoutCompiler }, async (t) => {
  const metrics = new GpuMetrics(await compileLibrary(t, NVML))
  const whole = {
    nv_gpu_utilization: { 'gpu_uuid=GPU-a': 0.37 },
    nv_gpu_memory_total_bytes: {
      'gpu_uuid=GPU-a': 85_899_345_920,
      'gpu_uuid=MIG-b': 85_899_345_920,
    },
    nv_gpu_memory_used_bytes: { 'gpu_uuid=GPU-a': 1024, 'gpu_uuid=MIG-b': 1024 },
    nv_gpu_power_usage: { 'gpu_uuid=GPU-a': 71.5 },
    nv_gpu_power_limit: { 'gpu_uuid=GPU-a': 700 },
  }
  t.same(await valuesOf(metrics), { ...whole, nv_energy_consumption: { 'gpu_uuid=GPU-a': 0 } })
  t.same(await valuesOf(metrics), { ...whole, nv_energy_consumption: { 'gpu_uuid=GPU-a': 2.5 } })
})

await t.test('a machine without a GPU has no such families', async (t) => {
  const absent = new GpuMetrics('libnvidia-ml-missing.so.1')
  t.same(await absent.read(), [])
  t.same(await new GpuMetrics('libc.so.6').read(), [])
})

await t.test(
  'a library without one of the calls has none either',
  { skip: withoutCompiler },
  async (t) => {
    const library = await compileLibrary(t, NVML.replace('nvmlDeviceGetPowerUsage', 'other'))
    t.same(await new GpuMetrics(library).read(), [])
  },
)

await t.test('a driver that hangs is left out of scrapes', { skip: withoutCompiler }, async (t) => {
  const power = 'TELL(nvmlDeviceGetPowerUsage, unsigned, *out = 71500)'
  const slow = 'TELL(nvmlDeviceGetPowerUsage, unsigned, (*out = ++asked * 1000, usleep(1500000)))'
  const text = NVML.replace(power, `static unsigned asked;\n${slow}`)
  t.not(text, NVML)
  const metrics = new GpuMetrics(await compileLibrary(t, text))
  t.same(await Promise.all([metrics.read(), metrics.read()]), [[], []])
  let values = await valuesOf(metrics)
  while (values['nv_gpu_power_usage'] === undefined) values = await valuesOf(metrics)
  t.same(values['nv_gpu_power_usage'], { 'gpu_uuid=GPU-a': 1 }, 'three scrapes asked it once')
})
