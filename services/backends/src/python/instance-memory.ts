import type { Arena, ArenaPart } from './arena.ts'
import { badFrame, type Frame, type TensorPlace, type WireResponse } from './frames.ts'
import type { ResponseContent } from './open-execution.ts'
import { readExtra, type TensorBytes, takeTensors } from './wire-response.ts'

type MaybePart = ArenaPart | undefined

/** An idle arena is trimmed after so long without a request. */
const IDLE_MS = 1000
/** Larger results get their memory when the process asks for it. */
const LARGEST_GUESS = 64 * 1024 * 1024

/** What a frame's responses are. */
export interface TakenResponses {
  readonly contents: readonly (ResponseContent | undefined)[]
  readonly copied: Promise<void> | undefined
}

/** Who has which part of an instance's arena. */
export class InstanceMemory {
  readonly #findArena: () => Arena | undefined
  readonly #idleBytes: number
  /** By offset: memory of inputs that the model still has, although their execution has ended. */
  readonly #retained = new Map<number, ArenaPart>()
  /** Offsets of memory for outputs that the process asked for. */
  readonly #grown = new Set<number>()
  #guess = 0
  #trimTimer: NodeJS.Timeout | undefined
  #isClosed = false

  /**
   * @param findArena - the arena; undefined if there is none, or none any more.
   * @param idleBytes - memory that an idle instance keeps.
   */
  constructor(findArena: () => Arena | undefined, idleBytes: number) {
    this.#findArena = findArena
    this.#idleBytes = idleBytes
  }

  /** Memory for the outputs of the next execution, as large as the results lately. */
  allocateScratch(): MaybePart {
    return this.#guess > 0 ? this.#findArena()?.allocate(this.#guess) : undefined
  }

  /** @returns undefined if the arena is full, or there is none. */
  grow(bytes: number): MaybePart {
    const part = this.#findArena()?.allocate(bytes)
    if (part !== undefined) this.#grown.add(part.offset)
    return part
  }

  /** The model keeps arrays over the part until it releases it. */
  retain(part: ArenaPart): void {
    this.#retained.set(part.offset, part)
  }

  /** @throws ServeError MALFORMED_MESSAGE if the process does not have the part. */
  release(offset: number): void {
    const part = this.#retained.get(offset)
    if (part === undefined) throw badFrame(`a release of ${offset}, which it does not have`)
    this.#retained.delete(offset)
    this.#findArena()?.free(part)
    this.trimLater()
  }

  /** Frees the memory of an execution, except inputs that the model keeps. */
  free({ region, scratch }: { region: MaybePart; scratch: MaybePart }, isRetained: boolean): void {
    const arena = this.#findArena()
    if (arena === undefined) return
    if (scratch !== undefined) arena.free(scratch)
    if (region === undefined) return
    if (isRetained) this.retain(region)
    else arena.free(region)
  }

  /**
   * Copies the responses of a frame out of the arena, and frees the memory that the process had asked for.
   *
   * @param own - further parts that the frame may name.
   * @returns the responses, and when their large tensors are copied; undefined if all is.
   * @throws ServeError MALFORMED_MESSAGE if a tensor is elsewhere.
   */
  take(
    responses: readonly WireResponse[],
    { payload }: Frame,
    own: readonly MaybePart[],
  ): TakenResponses {
    const used = new Set<number>()
    const copies: Promise<void>[] = []
    const fromArena = (place: TensorPlace): Uint8Array => {
      const arena = this.#find(place, own, used)
      // Their elements are counted before anything else.
      if (place.datatype === 'BYTES') return arena.read(place.offset, place.size)
      const [bytes, copied] = arena.readLater(place.offset, place.size)
      if (copied !== undefined) copies.push(copied)
      return bytes
    }
    const contents = responses.map((response) => toContent(response, { payload, fromArena }))
    for (const offset of used) this.#grown.delete(offset)
    const free = (): void => {
      for (const offset of used) this.#findArena()?.free({ offset })
    }
    if (copies.length > 0) return { contents, copied: Promise.all(copies).then(free) }
    free()
    return { contents, copied: undefined }
  }

  /** Sizes the next scratch memory as the largest result lately. */
  learn(responses: readonly WireResponse[]): void {
    let size = 0
    for (const { tensors } of responses) {
      for (const tensor of tensors) size += tensor.size + 64
    }
    const decayed = this.#guess - Math.floor(this.#guess / 8)
    this.#guess = size > LARGEST_GUESS ? 0 : Math.max(size, decayed < 65_536 ? 0 : decayed)
  }

  /** Gives memory back to the system if nothing is executed for a while. */
  trimLater(): void {
    const arena = this.#findArena()
    if (arena?.isIdle !== true || arena.highest <= this.#idleBytes) return
    clearTimeout(this.#trimTimer)
    const trim = (): void => {
      if (this.#isClosed || !arena.isIdle || !arena.trim(this.#idleBytes)) return
      this.#trimTimer = setTimeout(trim, 0).unref()
    }
    this.#trimTimer = setTimeout(trim, IDLE_MS).unref()
  }

  /** An execution begins: no trim now. */
  cancelTrim(): void {
    clearTimeout(this.#trimTimer)
  }

  /** The process has ended. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#trimTimer)
  }

  /** The arena, if the frame may name the place in it. */
  #find(place: TensorPlace, own: readonly MaybePart[], used: Set<number>): Arena {
    const arena = this.#findArena()
    if (arena === undefined) throw badFrame('a tensor in an arena that there is not')
    const isInside = ({ offset, size }: ArenaPart): boolean =>
      offset <= place.offset && place.offset + place.size <= offset + size
    if (!own.some((part) => part !== undefined && isInside(part))) {
      const part = [...this.#grown]
        .map((offset) => ({ offset, size: arena.sizeOf(offset) }))
        .find(isInside)
      if (part === undefined) throw badFrame(`a tensor at ${place.offset}, which is not its own`)
      used.add(part.offset)
    }
    return arena
  }
}

function toContent(response: WireResponse, bytes: TensorBytes): ResponseContent | undefined {
  const { parameters, error } = readExtra(response)
  const outputs = takeTensors(response.tensors, bytes)
  if (!response.isPresent) return undefined
  return error === undefined ? { outputs, parameters } : { outputs: [], parameters, error }
}
