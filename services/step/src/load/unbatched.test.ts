import { join } from 'node:path'
import type { Engine } from '@tutti/backends'
import type { ModelConfig } from '@tutti/model-config'
import { ModelRepository } from '@tutti/repository'
import t, { type Test } from 'tap'
import { openStep } from '../step.ts'
import type { StepOptions } from '../step-options.ts'
import { stepOptions } from '../testing/open-test-step.ts'
import { ScriptedEngine } from '../testing/scripted-engine.ts'

const CONFIG = `backend: "scripted"
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }`

/** A step with one model, whose code says that it takes batches of 4. */
function openCompleted(t: Test, o: Partial<StepOptions>) {
  const paths = [t.testdir({ m: { 'config.pbtxt': CONFIG, 1: { f: 'a' } } })]
  const temporaryDirectory = join(t.testdirName, 'm')
  const repository = new ModelRepository({ paths, temporaryDirectory })
  const engine: Engine = Object.assign(new ScriptedEngine(), {
    isImmediate: true,
    complete: async ({ config }: { readonly config: ModelConfig }) => ({
      ...config,
      max_batch_size: 4,
    }),
  })
  const step = openStep(stepOptions({ repository, engines: [engine], ...o }))
  t.teardown(async () => {
    await step.close()
    await repository.close()
  })
  return step
}

await t.test('code that says a batch size where a Model says none fails the load', async (t) => {
  const step = openCompleted(t, { unbatched: new Set(['m']) })
  const message = /maxBatchSize: got 0, auto_complete_config of model 'm' says 4: want 4, or leave/
  await t.rejects(step.models.load('m'), { message })
})

await t.test('code may say a batch size where a Model says nothing', async (t) => {
  const step = openCompleted(t, { unbatched: new Set(['other']) })
  await step.models.load('m')
  t.match(step.served(), [{ name: 'm', versions: [{ state: 'READY' }] }])
})
