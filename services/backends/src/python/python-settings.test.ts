import { parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { DEFAULT_PYTHON_SETTINGS, readModelSettings } from './python-settings.ts'

const ineffective = (text: string) =>
  readModelSettings(
    parseModelConfig(`backend: "pytorch" ${text}`, 'config.pbtxt'),
    DEFAULT_PYTHON_SETTINGS,
  ).ineffective

await t.test('optimizations that are asked for are told to have no effect', async (t) => {
  for (const [text, name] of [
    [
      'execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } }',
      'execution_accelerators',
    ],
    [
      'execution_accelerators { cpu_execution_accelerator { name: "openvino" } }',
      'execution_accelerators',
    ],
    ['graph { level: 1 }', 'graph'],
    ['cuda { graphs: true }', 'cuda'],
    ['priority: PRIORITY_MAX', 'priority'],
    ['eager_batching: true', 'eager_batching'],
    ['gather_kernel_buffer_threshold: 1', 'gather_kernel_buffer_threshold'],
  ]) {
    t.same(ineffective(`optimization { ${text} }`), [
      `optimization.${name}: backend 'pytorch' has none`,
    ])
  }
})

await t.test('what asks for nothing is not told', async (t) => {
  for (const text of [
    '',
    'optimization { }',
    'optimization { execution_accelerators { } graph { } input_pinned_memory { enable: true } }',
  ]) {
    t.same(ineffective(text), [])
  }
})
