import type { ServeError } from '@tutti/errors'
import type { Datatype, Loan, NamedTensor } from '@tutti/tensor'

/** A tensor that can be fed or fetched. Runs name it by its place. */
export interface SessionPort {
  readonly name: string
  readonly datatype: Datatype
}

/** A tensor to be fed: the data of its parts, one behind the other. */
export interface TensorParts {
  readonly index: number
  readonly dims: readonly number[]
  readonly parts: readonly { readonly data: Uint8Array }[]
}

/** The work that a session executes at once. */
export interface SessionRun {
  /** Viewed until the run is done. */
  readonly inputs: readonly TensorParts[]
  /** Indexes of those wanted. */
  readonly outputs: readonly number[]
  /** Called once, at its end. */
  done(result: RunReply | ServeError): void
}

/** The results of one run. */
export interface RunReply {
  readonly outputs: readonly NamedTensor[]
  /** Loan of the outputs that are lent; the receiver ends it. */
  readonly loan: Loan | undefined
  /** Time that it waited for its thread; the others are the times of making the inputs, of the run itself and of reading the outputs. */
  readonly waitNs: number
  readonly inputNs: number
  readonly inferNs: number
  readonly outputNs: number
}

/** How a session is made. */
export interface OrtSessionOptions {
  readonly executionProviders: readonly { readonly name: string; readonly deviceId?: number }[]
  readonly graphOptimizationLevel: 'disabled' | 'basic' | 'extended' | 'all'
  readonly intraOpNumThreads: number
  readonly interOpNumThreads: number
  readonly executionMode: 'sequential' | 'parallel'
  readonly enableCpuMemArena: boolean
  readonly enableMemPattern: boolean
  readonly logSeverityLevel: number
  /** `session.*` configuration entries. */
  readonly extra: Readonly<Record<string, string>>
}
