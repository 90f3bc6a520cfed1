/** A file by which a backend is known, and the platform that a configuration names with it. */
export interface BackendFile {
  /** '' for none. */
  readonly platform: string
  /** Name of the file, or of the directory, in the version directory. */
  readonly filename: string
}

/** A backend that configurations may name. */
export interface BackendDescriptor {
  /** Triton's name. An engine's folder has this name too. */
  readonly backend: string
  /** Model files in the order in which Triton looks for them. The first is the default. */
  readonly files: readonly BackendFile[]
  /** Number of instances of a group on the CPU that names no count. Default: 1. */
  readonly cpuInstances?: number
  /** Kind of the instances where a configuration has no group. Default: KIND_AUTO. */
  readonly instanceKind?: 'KIND_CPU'
}

/** A whole number that `--backend-config=BACKEND,SETTING=VALUE` sets. */
export interface EngineSetting {
  /** Name of the setting where the engine reads it. */
  readonly field: string
  /** Factor that turns the number of the flag into that of the field. Default: 1. */
  readonly unit?: number
  readonly least: number
  readonly most: number
}

/** Packages that the processes of an engine import. */
export type PythonModule = 'numpy' | 'torch'

/**
 * An engine, as data: all that processes need to know of it where no model executes. Its code is `open.ts` of the same folder, which is loaded
 * with the first model. Descriptors import no code, so that operator and router know engines and load none.
 */
export interface EngineDescriptor extends BackendDescriptor {
  /** The name of its models' format in a Model. */
  readonly format: string
  /** Words for the format, where its name alone says too little. */
  readonly formatMeaning?: string
  /** The format as texts call it: `TITLE models`. */
  readonly title: string
  /** Settings by their name in `--backend-config`. */
  readonly settings: Readonly<Record<string, EngineSetting>>
  /** True if `--backend-config=BACKEND,library=PATH` may name another native library than that of its package. */
  readonly takesLibrary?: boolean
  /** Image of its pods: the one of all steps, or the one with Python. */
  readonly image: 'step' | 'python'
  /** Memory that a pod requests where its Model says nothing, as Kubernetes writes it: for the process with a small model. */
  readonly memory: string
  /** Modules that an interpreter must have, for an engine whose instances are Python processes. */
  readonly modules?: readonly PythonModule[]
  /** Whether instances may share a process: `instances.sharedInterpreter` of a Model. */
  readonly sharesInterpreters?: boolean
  /** Whether a Model of this format may leave another backend in config.pbtxt: one that itself is code for this engine. */
  readonly servesOthers?: boolean
  /** Text with which its errors begin that name no model. */
  readonly errorPrefix?: string
}
