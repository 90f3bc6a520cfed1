import type { OrtLibrary } from './ort-library.ts'
import type { SessionPort } from './session-contract.ts'

/** A name of the model's, as a C string that stays where it is. */
export interface NativeName {
  readonly bytes: Uint8Array
  readonly address: bigint
}

/** Native memory of a run, used again by later ones: addresses of the inputs' names and values, of the outputs', and its options. */
export interface RunBlock {
  readonly addresses: BigUint64Array
  readonly address: number
  /** OrtRunOptions, by which the run can be ended. */
  readonly options: bigint
  /** Whether these have the arena give back what is free after the run. */
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

/** @param check - of each status. */
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
