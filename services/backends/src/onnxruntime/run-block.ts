import type { OrtLibrary } from './ort-library.ts'
import type { SessionPort } from './session-contract.ts'

/** Name of an input or output as a C string that stays at its address. */
export interface NativeName {
  readonly bytes: Uint8Array
  readonly address: bigint
}

/**
 * Native memory of a run, reused by later runs. It holds the addresses of the names and values of the inputs, then of the
 * outputs, and the run's options.
 */
export interface RunBlock {
  readonly addresses: BigUint64Array
  readonly address: number
  /** Address of the OrtRunOptions, through which a run can be ended. */
  readonly options: bigint
  /** True if the options make the arena free unused memory after the run. */
  isShrinking: boolean
}

interface Model {
  readonly library: OrtLibrary
  readonly inputs: readonly SessionPort[]
  readonly outputs: readonly SessionPort[]
}

export function toNativeNames(library: OrtLibrary, ports: readonly SessionPort[]): NativeName[] {
  return ports.map(({ name }) => {
    const bytes = Buffer.from(`${name}\0`)
    return { bytes, address: BigInt(library.addressOf(bytes)) }
  })
}

/** Allocates the memory of a run. @param check - throws for a status that is not 0. */
export function createRunBlock(
  { library, inputs, outputs }: Model,
  check: (status: number) => void,
): RunBlock {
  // A name and a value for each; never empty, so that it has an address.
  const addresses = new BigUint64Array(Math.max(1, 2 * (inputs.length + outputs.length)))
  const options = new BigUint64Array(1)
  check(library.api.createRunOptions(options))
  const place = { addresses, address: library.addressOf(addresses) }
  return { ...place, options: options[0] ?? 0n, isShrinking: false }
}
