import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { instanceGroup } from '@tutti/model-config/testing'
import t from 'tap'
import { readConfigGraph } from '../read/read-config.ts'
import { ensembleConfig, modelConfig, stepConfig } from '../testing/configs.ts'
import { validateGraph } from './validate-graph.ts'

const IN = [{ name: 'x' }]
const OUT = [{ name: 'y' }]
const GOOD = { name: 'N', input: IN, output: OUT, steps: [stepConfig('M', { a: 'x' }, { b: 'y' })] }
const OPTIMIZATION = {
  priority: 'PRIORITY_DEFAULT',
  gather_kernel_buffer_threshold: 0,
  eager_batching: false,
} as const

const REFUSED: readonly { rule: string; config: ModelConfig; text: string }[] = [
  {
    rule: 'scheduling needs the platform',
    config: ensembleConfig({ ...GOOD, platform: '', backend: 'python' }),
    text: "ensemble scheduling cannot be set for model 'N' whose platform is not ensemble",
  },
  {
    rule: 'the platform needs scheduling',
    config: modelConfig({ name: 'N', platform: 'ensemble', backend: '' }),
    text: 'ensemble scheduling must be set for ensemble N whose platform is ensemble',
  },
  {
    rule: 'no backend',
    config: ensembleConfig({ ...GOOD, backend: 'python' }),
    text: "Ensemble model 'N' must have platform type 'ensemble' and empty backend type",
  },
  {
    rule: 'no instance group',
    config: ensembleConfig({ ...GOOD, instance_group: [instanceGroup()] }),
    text: "instance group should not be specified for ensemble 'N'",
  },
  {
    rule: 'no optimization',
    config: ensembleConfig({ ...GOOD, optimization: OPTIMIZATION }),
    text: "optimization should not be specified for ensemble 'N'",
  },
  {
    rule: 'no warm-up',
    config: ensembleConfig({
      ...GOOD,
      model_warmup: [{ name: 'w', batch_size: 1, inputs: {}, count: 1 }],
    }),
    text: "model_warmup can not be specified for ensemble 'N'",
  },
  {
    rule: 'a step at least',
    config: ensembleConfig({ ...GOOD, steps: [] }),
    text: "must specify 'step' for ensemble 'N'",
  },
  {
    rule: 'a model name',
    config: ensembleConfig({ ...GOOD, steps: [stepConfig('', { a: 'x' }, { b: 'y' })] }),
    text: "must specify 'model_name' in step 0 of ensemble 'N'",
  },
  {
    rule: 'no namespace',
    config: ensembleConfig({
      ...GOOD,
      steps: [{ ...stepConfig('M', { a: 'x' }, { b: 'y' }), model_namespace: 'other' }],
    }),
    text: "'model_namespace' is 'other' in step 0 of ensemble 'N', want '': model namespacing is off",
  },
  {
    rule: 'an input mapping',
    config: ensembleConfig({ ...GOOD, steps: [...GOOD.steps, stepConfig('M', {}, { b: 'z' })] }),
    text: "must specify 'input_map' in step 1 of ensemble 'N'",
  },
  {
    rule: 'an output mapping',
    config: ensembleConfig({ ...GOOD, steps: [stepConfig('M', { a: 'x' }, {})] }),
    text: "must specify 'output_map' in step 0 of ensemble 'N'",
  },
  {
    rule: 'one producer per tensor',
    config: ensembleConfig({
      ...GOOD,
      steps: [...GOOD.steps, stepConfig('O', { a: 'x' }, { b: 'y' })],
    }),
    text: "ensemble tensor 'y' can appear in an output map only once for ensemble 'N' step 1",
  },
  {
    rule: 'every input is used',
    config: ensembleConfig({ ...GOOD, input: [...IN, { name: 'z' }] }),
    text: "ensemble input 'z' for ensemble N' is not used",
  },
  {
    rule: 'every output is named in a map',
    config: ensembleConfig({ ...GOOD, output: [...OUT, { name: 'z' }] }),
    text: "ensemble output 'z' for ensemble N' is not used",
  },
  {
    rule: 'every output is written',
    config: ensembleConfig({
      ...GOOD,
      output: [{ name: 'z' }],
      steps: [stepConfig('M', { a: 'x', c: 'z' }, { b: 'y' })],
    }),
    text: "output 'z' for ensemble 'N' is not written",
  },
  {
    rule: 'the furthest tensor that is not connected is named',
    config: ensembleConfig({
      ...GOOD,
      steps: [
        stepConfig('M', { a: 'x', c: 'far' }, { b: 'near' }),
        stepConfig('M', { a: 'near' }, { b: 'y' }),
      ],
    }),
    text: "output 'y' for ensemble 'N' is not written: at least one of its depending tensors, 'far', is not connected",
  },
  {
    rule: 'a cycle leaves its tensors unwritten',
    config: ensembleConfig({
      ...GOOD,
      steps: [
        stepConfig('M', { a: 'x', c: 'q' }, { b: 'p' }),
        stepConfig('M', { a: 'p' }, { b: 'q', d: 'y' }),
      ],
    }),
    text: "output 'y' for ensemble 'N' is not written: at least one of its depending tensors, 'p', is not connected: tensors are made from one another: 'p' from 'q' from 'p'",
  },
  {
    rule: 'a step that reads what it makes',
    config: ensembleConfig({ ...GOOD, steps: [stepConfig('M', { a: 'x', c: 'y' }, { b: 'y' })] }),
    text: "output 'y' for ensemble 'N' is not written: tensors are made from one another: 'y' from 'y'",
  },
  {
    rule: 'a mapped output is consumed',
    config: ensembleConfig({
      ...GOOD,
      steps: [stepConfig('M', { a: 'x' }, { b: 'y', c: 'lost' })],
    }),
    text: "ensemble tensor 'lost' is unused in ensemble 'N'",
  },
  {
    rule: 'a consumed tensor is written',
    config: ensembleConfig({
      ...GOOD,
      steps: [...GOOD.steps, stepConfig('O', { a: 'x', c: 'unmade' }, { b: 'x' })],
    }),
    text: "ensemble tensor 'unmade' is unused in ensemble 'N'",
  },
]

await t.test('each broken rule gives the text of Triton', async (t) => {
  for (const { rule, config, text } of REFUSED) {
    t.match(
      refusal(config),
      {
        reason: 'ENSEMBLE_INVALID',
        code: 'INVALID_ARGUMENT',
        message: text,
        details: { ensemble: 'N' },
      },
      rule,
    )
    t.equal(refusal(config)?.message, text, rule)
  }
})

await t.test('rules are checked in order of the table', async (t) => {
  const config = ensembleConfig({
    ...GOOD,
    backend: 'python',
    optimization: OPTIMIZATION,
    steps: [],
  })
  t.match(refusal(config)?.message, /empty backend type/)
  t.match(refusal({ ...config, backend: '' })?.message, /optimization/)
})

await t.test('what Triton loads is accepted', async (t) => {
  const accepted = {
    'one step': ensembleConfig(GOOD),
    'a model that is no ensemble': modelConfig(),
    'an input that is also an output': ensembleConfig({ ...GOOD, output: [...OUT, { name: 'x' }] }),
    'a step that writes onto an input': ensembleConfig({
      ...GOOD,
      steps: [stepConfig('M', { a: 'x' }, { b: 'y', c: 'x' })],
    }),
    'the same tensor on two inputs of a step': ensembleConfig({
      ...GOOD,
      steps: [stepConfig('M', { a: 'x', c: 'x' }, { b: 'y' })],
    }),
    'an output that is also consumed': ensembleConfig({
      ...GOOD,
      output: [...OUT, { name: 'z' }],
      steps: [...GOOD.steps, stepConfig('M', { a: 'y' }, { b: 'z' })],
    }),
    'steps in any order': ensembleConfig({
      ...GOOD,
      steps: [stepConfig('M', { a: 'mid' }, { b: 'y' }), stepConfig('M', { a: 'x' }, { b: 'mid' })],
    }),
  }
  for (const [name, config] of Object.entries(accepted)) t.equal(refusal(config), undefined, name)
})

function refusal(config: ModelConfig): ServeError | undefined {
  try {
    validateGraph(config, readConfigGraph(config))
    return undefined
  } catch (error) {
    return ServeError.from(error)
  }
}
