import type { Random } from '../../attacks/random.ts'
import type { Call } from '../case.ts'

const LOG_SETTINGS = [
  {},
  { log_info: { bool_param: true } },
  { log_info: { uint32_param: 1 } },
  { log_verbose_level: { uint32_param: 0 } },
  { log_verbose_level: { bool_param: true } },
  { log_format: { string_param: 'default' } },
  { log_format: { string_param: 'nope' } },
  { log_file: { string_param: 'x' } },
  { nope: { string_param: 'x' } },
] as const
const TRACE_SETTINGS = [
  {},
  { trace_level: { value: ['OFF'] } },
  { trace_level: { value: ['TIMESTAMPS'] } },
  { trace_rate: { value: ['x'] } },
  { trace_rate: { value: ['1000'] } },
  { trace_count: { value: ['-1'] } },
  { trace_file: { value: ['x'] } },
  { log_frequency: { value: ['0'] } },
  { nope: { value: ['x'] } },
] as const
const LOG_BODIES = [
  '',
  '{}',
  '{"log_info":true}',
  '{"log_info":1}',
  '{"log_verbose_level":0}',
  '{"log_format":"default"}',
  '{"log_format":"x"}',
  '{"log_file":"x"}',
  '{"nope":1}',
  '{',
  '[]',
] as const
const TRACE_BODIES = [
  '',
  '{}',
  '{"trace_level":["OFF"]}',
  '{"trace_level":"OFF"}',
  '{"trace_level":["TIMESTAMPS"]}',
  '{"trace_rate":"1000"}',
  '{"trace_rate":"x"}',
  '{"trace_file":"x"}',
  '{"nope":"x"}',
  '{',
] as const
const GENERATE_BODIES = [
  '{"X":[1]}',
  '{"X":1}',
  '{"X":[1],"custom":"p","id":"i"}',
  '{"X":"text"}',
  '{"X":[1,2]}',
  '{"COUNT":2}',
  '{"COUNT":1}',
  '{"COUNT":0}',
  '{"COUNT":[100]}',
  '{}',
  '{',
  '',
  '[]',
  '{"X":[1],"Y":2}',
  '{"KIND":1}',
  '{"KIND":0}',
  '{"KIND":13}',
  '{"parameters":{"x":1},"X":[1]}',
] as const

function post(path: string, body: string): readonly Call[] {
  return [{ method: 'POST', path, body }]
}

/** Shared memory, trace and log settings, and generate: what few clients use. */
export function otherCase(random: Random): readonly Call[] {
  const { oneOf, chance } = random
  const memory = oneOf(['System', 'Cuda'] as const)
  const region = chance(0.7) ? 'r' : ''
  return oneOf<() => readonly Call[]>([
    () => [{ rpc: 'LogSettings', requests: [{ settings: oneOf(LOG_SETTINGS) }] }],
    () => [
      {
        rpc: 'TraceSetting',
        requests: [{ settings: oneOf(TRACE_SETTINGS), model_name: oneOf(['', 'batch', 'nope']) }],
      },
    ],
    () => post('/v2/logging', oneOf(LOG_BODIES)),
    () => [{ method: 'GET', path: '/v2/logging' }],
    () =>
      post(`/v2${oneOf(['', '/models/batch', '/models/nope'])}/trace/setting`, oneOf(TRACE_BODIES)),
    () => [
      { method: 'GET', path: `/v2${oneOf(['', '/models/batch', '/models/nope'])}/trace/setting` },
    ],
    () => [{ rpc: `${memory}SharedMemoryStatus`, requests: [{ name: region }] }],
    () => [{ rpc: `${memory}SharedMemoryUnregister`, requests: [{ name: region }] }],
    () => [
      {
        method: 'GET',
        path: `/v2/${memory.toLowerCase()}sharedmemory/${region === '' ? '' : 'region/r/'}status`,
      },
    ],
    () =>
      post(
        `/v2/${memory.toLowerCase()}sharedmemory/${region === '' ? '' : 'region/r/'}unregister`,
        '',
      ),
    ...Array.from({ length: 5 }, () => () => {
      const model = oneOf(['request', 'repeat', 'ens_repeat', 'faults', 'ens_request', 'nope'])
      return post(
        `/v2/models/${model}${chance(0.2) ? '/versions/1' : ''}/generate${chance(0.5) ? '_stream' : ''}`,
        oneOf(GENERATE_BODIES),
      )
    }),
  ])()
}
