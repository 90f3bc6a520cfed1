import { type Arena, type ArenaPart, aligned } from './arena.ts'
import {
  badFrame,
  IN_ARENA,
  type InstanceFrame,
  type TensorPlace,
  type WireResponse,
} from './frames.ts'
import type { ResponseContent } from './open-execution.ts'
import { readExtra, type TensorBytes, takeTensors } from './wire-response.ts'

type MaybePart = ArenaPart | undefined

/** Larger results get their memory when the process asks for it. */
const LARGEST_GUESS = 64 * 1024 * 1024

/** Responses taken from a frame. */
export interface TakenResponses {
  /** Contents of the responses. Large tensors are views that are lent until `end`. */
  readonly contents: readonly (ResponseContent | undefined)[]
  readonly copied: Promise<unknown> | undefined
  /** Ends the loan of the caller. Readers that need the memory longer retain it before that. */
  readonly end: () => void
}

/** Parts of the arena that a frame may name, besides those that the process asked for. */
export interface FrameParts {
  /** Parts that are lent to readers and freed when these are done. */
  readonly lent: readonly MaybePart[]
  /** Parts whose tensors are copied, because the model uses them too. */
  readonly copied: readonly MaybePart[]
}

/** Tracks who uses which part of an instance's arena. */
export class InstanceMemory {
  readonly #findArena: () => Arena | undefined
  readonly #idleBytes: number
  /** Memory of inputs that the model still uses after their execution, by offset. */
  readonly #retained = new Map<number, ArenaPart>()
  /** Offsets of memory for outputs that the process asked for. */
  readonly #grown = new Set<number>()
  #guess = 0

  /**
   * Begins with no parts in use.
   *
   * @param findArena - finds the arena; undefined if the instance has none.
   * @param idleBytes - bytes of memory that an idle instance keeps.
   */
  constructor(findArena: () => Arena | undefined, idleBytes: number) {
    this.#findArena = findArena
    this.#idleBytes = idleBytes
  }

  /** Allocates memory for the outputs of the next execution, sized by recent results; undefined if none is needed or left. */
  allocateScratch(): MaybePart {
    return this.#guess > 0 ? this.#findArena()?.allocate(this.#guess) : undefined
  }

  /** Allocates memory that the process asks for. @returns undefined if the arena is full, or there is none. */
  grow(bytes: number): MaybePart {
    const part = this.#findArena()?.allocate(bytes)
    if (part !== undefined) this.#grown.add(part.offset)
    return part
  }

  /** Notes that the model uses the part until it releases it. */
  retain(part: ArenaPart): void {
    this.#retained.set(part.offset, part)
  }

  /**
   * Frees a retained part that the model no longer uses.
   *
   * @throws ServeError MALFORMED_MESSAGE if the process does not have the part.
   */
  release(offset: number): void {
    const part = this.#retained.get(offset)
    if (part === undefined) throw badFrame(`a release of ${offset}, which it does not have`)
    this.#retained.delete(offset)
    this.#findArena()?.free(part)
    this.trimLater()
  }

  /**
   * Takes the responses of a frame out of the arena.
   *
   * @throws ServeError MALFORMED_MESSAGE if a tensor is at a place that the frame may not name.
   */
  take(
    responses: readonly WireResponse[],
    { payload }: InstanceFrame,
    parts: FrameParts,
  ): TakenResponses {
    const arena = this.#findArena()
    const used = new Set(parts.lent.flatMap((part) => part?.offset ?? []))
    const copies: Promise<void>[] = []
    let hasViews = false
    const fromArena = (place: TensorPlace): Uint8Array => {
      if (arena === undefined) throw badFrame('a tensor in an arena that there is not')
      const isOwn = this.#isOwn(arena, place, parts, used)
      // Their elements are counted before anything else, and must not change then.
      if (place.datatype === 'BYTES') return arena.read(place.offset, place.size)
      if (isOwn) {
        hasViews = true
        return arena.view(place.offset, place.size)
      }
      const [bytes, copied] = arena.readLater(place.offset, place.size)
      if (copied !== undefined) copies.push(copied)
      return bytes
    }
    const bytes = { payload, at: 0, fromArena }
    const contents = responses.map((response) => toContent(response, bytes))
    for (const offset of used) this.#grown.delete(offset)
    const free = (): void => {
      for (const offset of used) arena?.free({ offset })
      if (used.size > 0) this.trimLater()
    }
    const copied = copies.length === 0 ? undefined : Promise.all(copies)
    if (arena === undefined || !hasViews) return { contents, copied, end: free }
    const loan = arena.lend(free)
    const { retain } = loan
    return {
      contents: contents.map((content) => content && { ...content, retain }),
      copied,
      end: () => loan.end(),
    }
  }

  /** Sizes the next scratch memory by the largest recent result. */
  learn(responses: readonly WireResponse[]): void {
    let size = 0
    for (const { tensors } of responses) {
      for (const tensor of tensors) if (tensor.place === IN_ARENA) size += aligned(tensor.size)
    }
    const decayed = this.#guess - Math.floor(this.#guess / 8)
    this.#guess = size > LARGEST_GUESS ? 0 : Math.max(size, decayed < 65_536 ? 0 : decayed)
  }

  /** Gives memory back to the system if nothing is executed for a while. */
  trimLater(): void {
    this.#findArena()?.trimLater(this.#idleBytes)
  }

  /** Cancels a pending trim, since an execution begins. */
  cancelTrim(): void {
    this.#findArena()?.cancelTrim()
  }

  /**
   * Tells whether the server alone has the tensor's part.
   *
   * @param used - gets a part that the process had asked for.
   * @throws ServeError MALFORMED_MESSAGE if the frame may not name the place.
   */
  #isOwn(arena: Arena, place: TensorPlace, parts: FrameParts, used: Set<number>): boolean {
    const isInside = (part: MaybePart): boolean =>
      part !== undefined &&
      part.offset <= place.offset &&
      place.offset + place.size <= part.offset + part.size
    if (parts.lent.some(isInside)) return true
    if (parts.copied.some(isInside)) return false
    const part = [...this.#grown]
      .map((offset) => ({ offset, size: arena.sizeOf(offset) }))
      .find(isInside)
    if (part === undefined) throw badFrame(`a tensor at ${place.offset}, which is not its own`)
    used.add(part.offset)
    return true
  }
}

function toContent(response: WireResponse, bytes: TensorBytes): ResponseContent | undefined {
  const { parameters, error } = readExtra(response)
  const outputs = takeTensors(response.tensors, bytes)
  if (!response.isPresent) return undefined
  return error === undefined ? { outputs, parameters } : { outputs: [], parameters, error }
}
