import type { BufferPool } from './buffer-pool.ts'
import type { Address, OrtLibrary } from './ort-library.ts'
import type { RunBlock } from './run-block.ts'
import type { SessionPort, SessionRun } from './session-contract.ts'

/** Parts that the session of a model is made of. */
export interface SessionParts {
  readonly library: OrtLibrary
  readonly session: Address
  readonly inputs: readonly SessionPort[]
  readonly outputs: readonly SessionPort[]
  /** Pool of buffers for copies of inputs. */
  readonly pool: BufferPool
  /** True if short runs may block the calling thread. */
  readonly mayRunHere: boolean
  /** True if the session keeps the memory of its runs for later ones. */
  readonly hasArena: boolean
}

/** Run whose inputs are in place. It keeps all memory referenced that the runtime reads, until the run is over. */
export interface OpenedRun {
  readonly run: SessionRun
  readonly block: RunBlock
  /** Copies of inputs. Large ones go back into the pool. */
  readonly copies: ArrayBuffer[]
  readonly beginNs: number
  inputBytes: number
  inputNs: number
  /** Addresses of the OrtValues of outputs that are lent. The loan releases them. */
  readonly lent: bigint[]
  isTerminated: boolean
}
