import type { EngineDescriptor, EngineSetting } from '../descriptor.ts'

const MOST_BYTES = 2 ** 40
const seconds = (field: string, least: number): EngineSetting => ({
  field,
  unit: 1000,
  least,
  most: 86_400,
})

/** Settings of engines whose instances are processes. */
export const PROCESS_SETTINGS: EngineDescriptor['settings'] = {
  'stub-timeout-seconds': seconds('startMs', 1),
  'finalize-timeout-seconds': seconds('finalizeMs', 0),
  'abandoned-timeout-seconds': seconds('abandonedMs', 0),
  'unanswered-timeout-seconds': seconds('unansweredMs', 0),
  'background-call-timeout-seconds': seconds('backgroundMs', 0),
  'background-calls': { field: 'backgroundCalls', least: 0, most: 65_536 },
  'shm-default-byte-size': { field: 'idleBytes', least: 0, most: MOST_BYTES },
  'shm-max-byte-size': { field: 'arenaBytes', least: 2 ** 20, most: MOST_BYTES },
}

/** Models that are Python code, in processes. */
export const python = {
  backend: 'python',
  files: [{ platform: '', filename: 'model.py' }],
  // Triton's Python backend asks for the CPU where the configuration says nothing.
  instanceKind: 'KIND_CPU',
  format: 'python',
  formatMeaning: 'a model.py for the Python backend',
  title: 'Python',
  settings: PROCESS_SETTINGS,
  image: 'python',
  memory: '384Mi',
  modules: ['numpy'],
  sharesInterpreters: true,
  servesOthers: true,
} as const satisfies EngineDescriptor
