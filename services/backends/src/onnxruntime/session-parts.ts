import type { BufferPool } from './buffer-pool.ts'
import type { Address, OrtLibrary } from './ort-library.ts'
import type { RunBlock } from './run-block.ts'
import type { SessionPort, SessionRun } from './session-contract.ts'

/** The parts of which the session of a model is made. */
export interface SessionParts {
  readonly library: OrtLibrary
  readonly session: Address
  readonly inputs: readonly SessionPort[]
  readonly outputs: readonly SessionPort[]
  /** For copies of inputs. */
  readonly pool: BufferPool
  /** Whether runs that are short may run on the calling thread. */
  readonly mayRunHere: boolean
  /** Whether it keeps the memory of its runs for later ones. */
  readonly hasArena: boolean
}

/** A run whose inputs are in place. Everything that the runtime reads stays referenced from here until the run is over. */
export interface OpenedRun {
  readonly run: SessionRun
  readonly block: RunBlock
  /** Copies of inputs. Large ones go back into the pool. */
  readonly copies: ArrayBuffer[]
  readonly beginNs: number
  inputBytes: number
  inputNs: number
  /** Outputs that are lent: the loan releases them. */
  readonly lent: bigint[]
  isTerminated: boolean
}
