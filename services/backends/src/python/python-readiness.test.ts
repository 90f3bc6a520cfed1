// needs: python
import { silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { instanceGroup } from '@tutti/model-config/testing'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import {
  answerWith,
  bytesRequestInput,
  loadPythonModel,
  type PythonTestOptions,
  pythonConfig,
  pythonModel,
  WITHOUT_PYTHON,
} from '../testing/python-model.ts'

const skip = WITHOUT_PYTHON
const request = (...values: readonly number[]) => stepRequest([bytesRequestInput(...values)])

function load(t: Test, methods: string, o: PythonTestOptions = {}): Promise<LoadedModel> {
  return loadPythonModel(t, pythonModel(methods, 'import asyncio'), o)
}

await t.test('a model without is_ready has no word on it', { skip }, async (t) => {
  t.equal((await load(t, answerWith('x'))).isReady, undefined)
})

await t.test('a model says whether it is ready; what goes wrong is logged', { skip }, async (t) => {
  const lines: unknown[] = []
  const log = {
    ...silentLogger,
    info: (_: string, { line }: { line?: unknown }) => lines.push(line),
  }
  for (const [isReady, wanted, logged] of [
    ['def is_ready(self):\n    return True', true],
    ['def is_ready(self):\n    return False', false],
    ['async def is_ready(self):\n    await asyncio.sleep(0)\n    return True', true],
    ['def is_ready(self):\n    raise ValueError("not today")', false, 'ValueError: not today'],
    ['def is_ready(self):\n    return 1', false, "is_ready gave <class 'int'>, want a bool"],
  ] as const) {
    await t.test(isReady, async (t) => {
      const model = await load(t, `${isReady}\n${answerWith('x')}`, { log })
      t.equal(await model.isReady?.(), wanted)
      t.equal(await model.isReady?.(), wanted, 'again')
      const [answer] = await executeOnce(model, [request(7)])
      t.same([...(answer?.outputs[0]?.data ?? [])], [7], 'it executes all the same')
      await model.close()
      if (logged !== undefined) t.ok(lines.includes(logged), JSON.stringify(lines))
    })
  }
})

await t.test('it is asked while it executes, and while it does not answer', { skip }, async (t) => {
  const clock = createManualClock()
  const model = await load(
    t,
    `asked = threading.Event()
def is_ready(self):
    if not self.asked.is_set():
        self.asked.set()
        return True
    while True:
        time.sleep(60)
def execute(self, requests):
    self.asked.wait()
    return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([1], np.uint8))])]`,
    { clock },
  )
  const executed = executeOnce(model, [request(7)])
  t.equal(await model.isReady?.(), true, 'only this lets the execution end')
  await executed
  const silent = model.isReady?.()
  clock.advance(5000)
  t.equal(await silent, false)
  await executeOnce(model, [request(7)])
})

await t.test('it is ready when all its instances are, and none has died', { skip }, async (t) => {
  const model = await load(
    t,
    `def initialize(self, args):
    self.is_second = args["model_instance_name"].endswith("_1")
def is_ready(self):
    return not self.is_second
${answerWith('x')}`,
    {
      config: pythonConfig({ instance_group: [instanceGroup({ count: 2 })] }),
      load: { instances: 2 },
    },
  )
  t.equal(await model.isReady?.(), false)
  const mortal = await load(t, 'def is_ready(self):\n    os._exit(3)\n' + answerWith('x'))
  t.equal(await mortal.isReady?.(), false)
  await executeOnce(mortal, [request(7)])
})
