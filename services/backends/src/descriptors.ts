import type { BackendDescriptor, EngineDescriptor } from './descriptor.ts'
import { onnxruntime } from './onnxruntime/descriptor.ts'
import { python } from './python/descriptor.ts'
import { pytorch } from './pytorch/descriptor.ts'

export type {
  BackendDescriptor,
  BackendFile,
  EngineDescriptor,
  EngineSetting,
  PythonModule,
} from './descriptor.ts'

/** Backends of Triton that no engine here serves: a configuration may name them, and its model is refused. */
const tensorflow = {
  backend: 'tensorflow',
  files: [
    { platform: 'tensorflow_savedmodel', filename: 'model.savedmodel' },
    { platform: 'tensorflow_graphdef', filename: 'model.graphdef' },
  ],
  cpuInstances: 2,
} as const
const tensorrt = {
  backend: 'tensorrt',
  files: [{ platform: 'tensorrt_plan', filename: 'model.plan' }],
} as const
const openvino = {
  backend: 'openvino',
  files: [{ platform: '', filename: 'model.xml' }],
} as const

/** The list. An engine is a folder beside this file, and a line here. In the order in which Triton looks for the files. */
const LIST = [
  tensorflow,
  tensorrt,
  onnxruntime,
  openvino,
  pytorch,
  python,
] as const satisfies readonly (BackendDescriptor | EngineDescriptor)[]

type ListedEngine = Extract<(typeof LIST)[number], { readonly format: string }>

/** The name of a format, as Models say it. */
export type EngineFormat = ListedEngine['format']
/** Triton's name of an engine of the list. */
export type EngineName = ListedEngine['backend']

/** An engine of the list. */
export interface ListedDescriptor extends EngineDescriptor {
  readonly backend: EngineName
  readonly format: EngineFormat
}

/** All backends that are known by name, in the order in which Triton looks for their files. */
export const BACKENDS: readonly BackendDescriptor[] = LIST

/** The engines, in the order of BACKENDS. */
export const ENGINES: readonly ListedDescriptor[] = LIST.filter((row) => 'format' in row)

/** The engine of python-based backends. Engines in Python processes that name no interpreter use its interpreter. */
export const PYTHON_ENGINE: ListedDescriptor = python
/** The engine of ONNX models, which also runs the graphs of built-in steps. */
export const ONNX_ENGINE: ListedDescriptor = onnxruntime

/** The engines whose instances are Python processes. */
export const ENGINES_IN_PYTHON = ENGINES.filter(({ modules }) => modules !== undefined)

/** Finds the descriptor of a backend; undefined for one that is not known by name. */
export function findBackend(backend: string): BackendDescriptor | undefined {
  return BACKENDS.find((known) => known.backend === backend)
}

/** Finds the engine of a backend; undefined if none has its name. */
export function findEngine(backend: string): ListedDescriptor | undefined {
  return ENGINES.find((engine) => engine.backend === backend)
}

/** Finds the engine of the models of a format. */
export function engineOfFormat(format: EngineFormat): ListedDescriptor {
  const engine = ENGINES.find((known) => known.format === format)
  if (engine === undefined) throw new Error(`bug: no engine has format '${format}'`)
  return engine
}

/** Writes words as a list: `a, b or c`. */
export function listWords(words: readonly string[], last: 'and' | 'or'): string {
  if (words.length < 2) return words.join('')
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`
}

/** Writes the engines that have something in common as their models are called: `Python and TorchScript models`. */
export function modelsOf(isWanted: (engine: EngineDescriptor) => boolean): string {
  const titles = ENGINES.filter(isWanted).map(({ title }) => title)
  return `${listWords(titles.toSorted(), 'and')} models`
}
