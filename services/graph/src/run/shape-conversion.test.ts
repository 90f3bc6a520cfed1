import type { ModelConfig } from '@tutti/model-config'
import { elementCount, formatShape } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { readConfigGraph } from '../read/read-config.ts'
import { ensembleConfig, modelConfig, stepConfig } from '../testing/configs.ts'
import { EnsembleDriver } from '../testing/ensemble-driver.ts'
import { applyReshape, convertBatch } from './shape-conversion.ts'

await t.test('a batch dimension comes and goes as Triton has it', async (t) => {
  const table: readonly {
    from: readonly number[]
    dims: readonly number[]
    wantsBatch: boolean
    to: readonly number[]
  }[] = [
    { from: [16], dims: [16], wantsBatch: true, to: [1, 16] },
    { from: [5], dims: [-1], wantsBatch: true, to: [1, 5] },
    { from: [3, 16], dims: [16], wantsBatch: true, to: [3, 16] },
    { from: [3, 16], dims: [-1, 16], wantsBatch: false, to: [3, 16] },
    { from: [1, 16], dims: [16], wantsBatch: false, to: [16] },
    { from: [3, 16], dims: [16], wantsBatch: false, to: [3, 16] },
    { from: [1, 16], dims: [-1, 16], wantsBatch: false, to: [1, 16] },
    { from: [7], dims: [-1], wantsBatch: false, to: [7] },
    { from: [], dims: [16], wantsBatch: false, to: [] },
  ]
  for (const { from, dims, wantsBatch, to } of table) {
    t.same(
      convertBatch(from, { dims, isBatched: wantsBatch }),
      to,
      `${formatShape(from)} -> ${formatShape(to)}`,
    )
  }
})

await t.test('converting never changes the number of elements', async (t) => {
  const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 })
  const declared = fc.array(fc.integer({ min: -1, max: 4 }), { maxLength: 4 })
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(shape, declared, fc.boolean(), (from, dims, isBatched) => {
        const to = convertBatch(from, { dims, isBatched })
        return elementCount(to) === elementCount(from)
      }),
    ),
  )
})

await t.test('a reshape keeps the batch and what is variable', async (t) => {
  t.same(applyReshape([4], false, [4], [2, 2]), [2, 2])
  t.same(applyReshape([8, 4], true, [4], [2, 2]), [8, 2, 2])
  t.same(applyReshape([8, 5, 3], true, [-1, 3], [1, -1, 3]), [8, 1, 5, 3])
  t.same(applyReshape([8, 1], true, [1], []), [8])
  t.same(applyReshape([8, 9], true, [4], [2, 2]), [8, 9], 'what does not fit is left alone')
  t.same(applyReshape([3], false, [3], [-1]), [-1], 'a refused config cannot make it throw')
})

await t.test('shapes are converted on the way to steps and to the client', async (t) => {
  const batching = modelConfig({
    name: 'batching',
    max_batch_size: 4,
    input: [{ name: 'a', dims: [2, 2] }],
    output: [{ name: 'b', dims: [-1] }],
  })
  const whole = modelConfig({
    name: 'whole',
    input: [{ name: 'a', dims: [-1] }],
    output: [{ name: 'b', dims: [2, 2] }],
  })
  const known: Readonly<Record<string, ModelConfig>> = { batching, whole }
  const config = ensembleConfig({
    max_batch_size: 4,
    input: [{ name: 'x', dims: [4], reshape: { shape: [2, 2] } }],
    output: [{ name: 'y', dims: [4], reshape: { shape: [2, 2] } }],
    steps: [
      stepConfig('batching', { a: 'x' }, { b: 'mid' }),
      stepConfig('whole', { a: 'mid' }, { b: 'y' }),
    ],
  })
  const plan = planEnsemble({
    config,
    graph: readConfigGraph(config),
    lookup: (name) => ({ config: known[name] ?? config, readyVersions: [1] }),
  })
  const driver = new EnsembleDriver(plan)
  driver.start({ x: 'X' }, [1, 4])
  t.same(driver.of('batching').inputs[0]?.shape, [1, 2, 2])
  driver.respond(driver.of('batching'), { b: 'M' }, { shape: [1, 9] })
  t.same(driver.of('whole').inputs[0]?.shape, [9])
  driver.respond(driver.of('whole'), { b: 'Y' }, { shape: [2, 2] })
  t.same(driver.emitted[0]?.action.outputs[0]?.shape, [1, 4])
})
