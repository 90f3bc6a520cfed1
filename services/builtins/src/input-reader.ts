import { nearestName } from '@tutti/errors'
import { type Datatype, formatShape, type Shape } from '@tutti/tensor'
import type { BuiltinFault, FeedingTensor, Port } from './ports.ts'

/** Thrown where a signature finds that an option or an input does not fit. */
export class PortFault extends Error {
  readonly fault: BuiltinFault
  constructor(fault: BuiltinFault) {
    super(`${fault.path}: got ${fault.got}, want ${fault.want}`)
    this.fault = fault
  }
}

/** Thrown where a signature depends on a datatype or dims that are not known. */
export class UnknownPort extends Error {}

/** @throws PortFault about an option, or an input as `inputs.NAME`. */
export function refuseOption(path: string, got: string, want: string): never {
  throw new PortFault({ path, got, want })
}

/** @throws PortFault about the dims of an input. */
export function refuseDims({ name, dims }: Port, want: string): never {
  throw new PortFault({ path: `inputs.${name}`, got: `dims ${formatShape(dims)}`, want })
}

/** The demands on an input. */
export interface InputDemands {
  /** Default: any. */
  readonly datatypes?: readonly Datatype[]
  /** Number of dimensions; a list is of the least and the most. Default: any. */
  readonly rank?: number | readonly [least: number, most: number]
  /** Extents of the last dimensions, -1 for any. The port gets them where its own are -1. */
  readonly last?: Shape
}

/** Gives a signature the tensors that feed a built-in, and checks them. */
export class InputReader {
  readonly #given: ReadonlyMap<string, FeedingTensor>
  readonly #taken: Port[] = []

  constructor(given: ReadonlyMap<string, FeedingTensor>) {
    this.#given = given
  }

  /** The inputs that were taken, in order. */
  get taken(): readonly Port[] {
    return this.#taken
  }

  has(name: string): boolean {
    return this.#given.has(name)
  }

  /**
   * Takes an input.
   *
   * @throws PortFault if it is absent or does not fit. @throws UnknownPort if its datatype or dims are not known.
   */
  take(name: string, demands: InputDemands = {}): Port {
    const given = this.#given.get(name)
    const path = `inputs.${name}`
    if (given === undefined) throw new PortFault({ path, got: 'none', want: 'a tensor' })
    const { datatype, dims } = given
    if (datatype !== undefined) checkDatatype(path, datatype, demands)
    if (dims !== undefined) checkDims(path, dims, demands)
    if (datatype === undefined || dims === undefined) throw new UnknownPort()
    const port = { name, datatype, dims: narrow(dims, demands) }
    this.#taken.push(port)
    return port
  }

  /** Takes an input that need not be there. */
  takeOptional(name: string, demands: InputDemands = {}): Port | undefined {
    return this.has(name) ? this.take(name, demands) : undefined
  }

  /** @throws PortFault for a tensor that was given and not taken. */
  refuseOthers(): void {
    const taken = this.#taken.map(({ name }) => name)
    const other = [...this.#given.keys()].find((name) => !taken.includes(name))
    if (other === undefined) return
    const near = nearestName(other, taken)
    const hint = near === undefined ? '' : `; did you mean ${near}?`
    const want = taken.length === 1 ? `the one input ${taken[0]}` : `the inputs ${taken.join(', ')}`
    throw new PortFault({ path: `inputs.${other}`, got: 'a tensor', want: `${want}${hint}` })
  }
}

function checkDatatype(path: string, datatype: Datatype, { datatypes }: InputDemands): void {
  if (datatypes === undefined || datatypes.includes(datatype)) return
  const want = datatypes.length === 1 ? `${datatypes[0]}` : `one of ${datatypes.join(', ')}`
  throw new PortFault({ path, got: datatype, want })
}

function checkDims(path: string, dims: Shape, { rank, last = [] }: InputDemands): void {
  const got = `dims ${formatShape(dims)}`
  const [least, most] =
    typeof rank === 'number' ? [rank, rank] : (rank ?? [Math.max(1, last.length), Infinity])
  if (dims.length < least || dims.length > most) {
    const count = least === most ? `${least}` : `${least} to ${most}`
    const want = most === Infinity ? `at least ${least} dimensions` : `${count} dimensions`
    throw new PortFault({ path, got, want })
  }
  const end = dims.slice(dims.length - last.length)
  if (end.every((extent, i) => extent === -1 || last[i] === -1 || extent === last[i])) return
  throw new PortFault({ path, got, want: `dims that end in ${formatShape(last)}` })
}

function narrow(dims: Shape, { last = [] }: InputDemands): Shape {
  const first = dims.length - last.length
  return dims.map((extent, i) => (extent === -1 ? (last[i - first] ?? -1) : extent))
}
