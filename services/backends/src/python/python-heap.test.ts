// needs: python
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

async function ask(model: LoadedModel): Promise<{ faults: number; resident: number }> {
  const [response] = await executeOnce(model, [stepRequest([bytesRequestInput(1)])])
  const { data } = response?.outputs[0] ?? { data: new Uint8Array(16) }
  const numbers = Buffer.from(data)
  return {
    faults: Number(numbers.readBigInt64LE(0)),
    resident: Number(numbers.readBigInt64LE(8)),
  }
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
