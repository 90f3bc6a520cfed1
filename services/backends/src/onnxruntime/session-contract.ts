import type { ServeError } from '@tutti/errors'
import type { Datatype, Loan, NamedTensor } from '@tutti/tensor'

/** Input or output of a session. Runs name it by its index. */
export interface SessionPort {
  readonly name: string
  readonly datatype: Datatype
}

/** Input tensor of a run. Its data is that of `parts`, one after the other. */
export interface RunInput {
  readonly index: number
  readonly dims: readonly number[]
  readonly parts: readonly { readonly data: Uint8Array }[]
}

/** Inputs and wanted outputs of one run of a session. */
export interface SessionRun {
  /** Input tensors, whose data is viewed until the run is done. */
  readonly inputs: readonly RunInput[]
  /** Indexes of the wanted outputs. */
  readonly outputs: readonly number[]
  /** Called once, when the run has ended. */
  done(result: RunReply | ServeError): void
}

/** Outputs and times of one run. */
export interface RunReply {
  readonly outputs: readonly NamedTensor[]
  /** Loan of the outputs that are lent; the receiver ends it. */
  readonly loan: Loan | undefined
  /**
   * Time that the run waited for its thread. The next ones are the times to put the inputs in place, of the run itself, and to
   * read the outputs.
   */
  readonly waitNs: number
  readonly inputNs: number
  readonly inferNs: number
  readonly outputNs: number
}

/** Execution provider of a session. */
export interface ExecutionProvider {
  /** `cpu`, `cuda`, or the name of an accelerator. */
  readonly name: string
  readonly deviceId?: number
  /** Options of an accelerator, by the runtime's names. */
  readonly options?: Readonly<Record<string, string>>
}

/** Options of a session. */
export interface OrtSessionOptions {
  /** Providers, of which the runtime asks the first ones first. */
  readonly executionProviders: readonly ExecutionProvider[]
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
