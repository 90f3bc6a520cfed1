import type { ModelInput } from '@tutti/model-config'
import type { StepRequest } from '@tutti/tensor'
import t from 'tap'
import { scriptedConfig } from '../testing/scheduler-rig.ts'
import { batchRequest, floats } from '../testing/step-builders.ts'
import { batchKey, compileBatchKey } from './queue-rules.ts'

function input(name: string, rest: Partial<ModelInput> = {}): ModelInput[] {
  return scriptedConfig().input.map((declared) => ({ ...declared, name, ...rest }))
}

function request(shapes: Readonly<Record<string, readonly number[]>>): StepRequest {
  const inputs = Object.entries(shapes).map(([name, shape]) => floats(name, shape))
  return { ...batchRequest(), inputs }
}

await t.test('requests share a batch as their shapes and inputs allow', async (t) => {
  const cases: readonly (readonly [
    string,
    ModelInput[],
    Record<string, number[]>,
    Record<string, number[]>,
    boolean,
  ])[] = [
    ['equal shapes', input('x'), { x: [1, 4] }, { x: [1, 4] }, true],
    ['the batch does not count', input('x'), { x: [1, 4] }, { x: [3, 4] }, true],
    ['other shapes', input('x'), { x: [1, 4] }, { x: [1, 5] }, false],
    ['ragged inputs', input('x', { allow_ragged_batch: true }), { x: [1, 4] }, { x: [1, 5] }, true],
    ['fixed dims are not compared', input('x', { dims: [4] }), { x: [1, 4] }, { x: [2, 4] }, true],
    [
      'the order of inputs does not count',
      [...input('x'), ...input('z')],
      { x: [1, 4], z: [1, 5] },
      { z: [1, 5], x: [1, 4] },
      true,
    ],
    [
      'one optional input more',
      [...input('x', { dims: [4] }), ...input('z', { dims: [1], optional: true })],
      { x: [1, 4] },
      { x: [1, 4], z: [1, 1] },
      false,
    ],
    [
      'the same optional inputs',
      [...input('x', { dims: [4] }), ...input('z', { dims: [1], optional: true })],
      { x: [1, 4], z: [1, 1] },
      { x: [2, 4], z: [2, 1] },
      true,
    ],
    [
      'shapes that would print alike side by side',
      [...input('x', { dims: [-1, -1] }), ...input('z', { dims: [-1] })],
      { x: [1, 2, 3], z: [1, 4] },
      { x: [1, 2, 34], z: [1] },
      false,
    ],
  ]
  for (const [name, inputs, a, b, want] of cases) {
    const compared = compileBatchKey(scriptedConfig({ input: inputs })) ?? []
    const [keyA, keyB] = [a, b].map((shapes) => batchKey(compared, request(shapes)))
    t.equal(keyA === keyB, want, name)
  }
})

await t.test('a model that never batches compares nothing', async (t) => {
  t.equal(compileBatchKey(scriptedConfig({ max_batch_size: 1 })), undefined)
})
