// needs: python
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { env, platform } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { LoadedModel } from '../engine.ts'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import {
  bytesRequestInput,
  loadPythonModel,
  pythonModel,
  WITHOUT_PYTHON,
} from '../testing/python-model.ts'

const skip = platform === 'linux' ? WITHOUT_PYTHON : 'the heap is glibc, on Linux'
/** Arrays of 3 MB that live for one execution, as pixels of 512 x 512 in FP32. The answer: page faults so far, resident pages. */
const CODE = pythonModel(`def execute(self, requests):
    import resource
    resident = int(open("/proc/self/statm").read().split()[1])
    began = time.monotonic()
    while time.monotonic() - began < 0.002:
        arrays = [np.ones(786432, np.float32) + i for i in range(8)]
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    y = np.array([faults, resident], np.int64).view(np.uint8)
    return [pb_utils.InferenceResponse([pb_utils.Tensor("y", y)]) for _ in requests]`)

/** The two numbers that a model answers. */
async function numbersOf(model: LoadedModel): Promise<readonly [number, number]> {
  const [response] = await executeOnce(model, [stepRequest([bytesRequestInput(1)])])
  const data = Buffer.from(response?.outputs[0]?.data ?? [])
  return [Number(data.readBigInt64LE(0)), Number(data.readBigInt64LE(8))]
}

async function ask(model: LoadedModel): Promise<{ faults: number; resident: number }> {
  const [faults, resident] = await numbersOf(model)
  return { faults, resident }
}

async function faultsOf(model: LoadedModel, executions: number): Promise<number> {
  const before = await ask(model)
  let after = before
  for (let i = 0; i < executions; i += 1) after = await ask(model)
  return (after.faults - before.faults) / executions
}

const ARRAY_PAGES = 768

await t.test('arrays of an execution take the memory of the last one', { skip }, async (t) => {
  const model = await loadPythonModel(t, CODE)
  await faultsOf(model, 3)
  const faults = await faultsOf(model, 10)
  t.ok(faults < ARRAY_PAGES / 2, `${faults} page faults for an execution`)
})

await t.test('a process with nothing to do gives the memory back', { skip }, async (t) => {
  const model = await loadPythonModel(t, CODE)
  const { resident: before } = await ask(model)
  const { resident: busy } = await ask(model)
  t.ok(busy - before > ARRAY_PAGES, `${busy} pages while it works, ${before} before`)
  for (let i = 0; i < 10; i += 1) {
    await sleep(2000)
    const { resident } = await ask(model)
    if (resident - before < ARRAY_PAGES) return
  }
  t.fail('it keeps the memory')
})

await t.test('settings of the environment are left as they are', { skip }, async (t) => {
  env['MALLOC_TRIM_THRESHOLD_'] = '131072'
  t.teardown(() => delete env['MALLOC_TRIM_THRESHOLD_'])
  const model = await loadPythonModel(t, CODE)
  await faultsOf(model, 3)
  const faults = await faultsOf(model, 10)
  t.ok(faults > ARRAY_PAGES, `${faults} page faults for an execution`)
})

/** Where the system gives huge pages to who asks, and the C library can ask for its heap (glibc 2.35). */
function areForTheAsking(): boolean {
  try {
    const modes = readFileSync('/sys/kernel/mm/transparent_hugepage/enabled', 'utf8')
    const version = execFileSync('getconf', ['GNU_LIBC_VERSION'], { encoding: 'utf8' })
    return modes.includes('[madvise]') && Number(/ 2\.(\d+)/.exec(version)?.[1]) >= 35
  } catch {
    return false
  }
}

/** Arrays that are too small for NumPy to ask by itself. The answer: bytes in huge pages, and settings that a program of the model gets. */
const HUGE = pythonModel(`def execute(self, requests):
    import subprocess
    arrays = [np.ones(786432, np.float32) for _ in range(8)]
    rollup = open("/proc/self/smaps_rollup").read()
    huge = int(rollup.split("AnonHugePages:")[1].split()[0]) * 1024
    program = "import os, sys; print(sum('GLIBC_TUNABLES' in name for name in os.environ) + len(sys._xoptions))"
    settings = int(subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE).stdout)
    y = np.array([huge, settings], np.int64).view(np.uint8)
    return [pb_utils.InferenceResponse([pb_utils.Tensor("y", y)]) for _ in requests]`)

const MB = 2 ** 20

await t.test(
  'the heap is made of huge pages, and programs of models get no settings',
  {
    skip: skip || (!areForTheAsking() && 'the system has none for the asking'),
  },
  async (t) => {
    const model = await loadPythonModel(t, HUGE)
    const [huge, settings] = await numbersOf(model)
    t.ok(huge > 8 * MB, `${huge} bytes in huge pages`)
    t.equal(settings, 0)
  },
)

await t.test('nothing is asked for where the environment has settings', { skip }, async (t) => {
  env['GLIBC_TUNABLES'] = 'glibc.malloc.tcache_count=7'
  t.teardown(() => delete env['GLIBC_TUNABLES'])
  const model = await loadPythonModel(t, HUGE)
  const [huge, settings] = await numbersOf(model)
  t.ok(huge < 8 * MB, `${huge} bytes in huge pages`)
  t.equal(settings, 1)
})
