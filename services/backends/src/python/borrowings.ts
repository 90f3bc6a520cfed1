import type { InferRequest } from '@tutti/tensor'
import { type Arena, arenaOf, INLINE_BYTES, PAGE_BYTES } from './arena.ts'
import { badFrame, OP, plainFrame } from './frames.ts'

/** Memory of other instances that an execution has. */
interface Borrowed {
  readonly places: { readonly begin: number; readonly end: number }[]
  readonly giveBacks: (() => void)[]
}

/** An arena that the process was asked to map. */
interface Mapped {
  /** The question. */
  readonly id: number
  isMapped: boolean
}

/**
 * Borrows inputs that are in the arenas of other instances. The instance's process maps these arenas privately and reads the
 * inputs in place, without a copy. Writes of the model stay private to its process.
 */
export class Borrowings {
  readonly #send: (frame: Buffer) => void
  readonly #arenas = new Map<Arena, Mapped>()
  /** Memory that open executions have borrowed, by the number of the execution. */
  readonly #open = new Map<number, Borrowed>()
  readonly #forget = (arena: Arena): void => {
    this.#arenas.delete(arena)
    this.#send(plainFrame(OP.UNMAP, arena.number))
  }
  #lastId = 0
  /** The process has ended, or its model writes into its inputs. */
  #isStopped = false

  /** @param send - writes a frame to the process. */
  constructor(send: (frame: Buffer) => void) {
    this.#send = send
  }

  /**
   * Retains an input for an execution.
   *
   * @returns the offset at which the process sees the input; undefined if the input must be copied. That is so if it is small or
   * in ordinary memory, if the process has not mapped its arena (yet), or if another execution has the same bytes and its model
   * may write there.
   */
  borrow(execution: number, { retain }: InferRequest, data: Uint8Array): number | undefined {
    const isSmall = data.byteLength <= INLINE_BYTES
    if (this.#isStopped || isSmall || data.byteOffset % PAGE_BYTES !== 0) return undefined
    const arena = retain && arenaOf(data)
    const base = arena && this.#baseOf(arena)
    if (retain === undefined || base === undefined) return undefined
    const begin = base + data.byteOffset
    const end = begin + data.byteLength
    for (const { places } of this.#open.values()) {
      if (places.some((other) => other.begin < end && begin < other.end)) return undefined
    }
    let borrowed = this.#open.get(execution)
    if (borrowed === undefined) {
      borrowed = { places: [], giveBacks: [] }
      this.#open.set(execution, borrowed)
    }
    borrowed.places.push({ begin, end })
    borrowed.giveBacks.push(retain())
    return begin
  }

  /** Takes the answer of the process whether it could map an arena. An arena that it could not map is not tried again. */
  answered(id: number, problem: unknown): void {
    for (const mapped of this.#arenas.values()) {
      if (mapped.id === id) mapped.isMapped = problem === undefined
    }
  }

  /** Gives back all that an execution borrowed, since the model no longer uses it. */
  giveBack(execution: number): void {
    const borrowed = this.#open.get(execution)
    this.#open.delete(execution)
    for (const giveBack of borrowed?.giveBacks ?? []) giveBack()
  }

  /**
   * Gives back all that an execution borrowed, as the process reports after the execution.
   *
   * @throws ServeError MALFORMED_MESSAGE if it had borrowed nothing.
   */
  returned(execution: number, isExecuting: boolean): void {
    if (isExecuting || !this.#open.has(execution)) {
      throw badFrame(`a return of what execution ${execution} does not have`)
    }
    this.giveBack(execution)
  }

  /**
   * Stops borrowing: from now on inputs are copied. A model that writes into its inputs makes the system copy page by page, which
   * takes several times as long.
   */
  stop(): void {
    this.#isStopped = true
  }

  /** Gives everything back, since the process has ended. */
  close(): void {
    this.stop()
    for (const arena of this.#arenas.keys()) arena.viewers.delete(this.#forget)
    this.#arenas.clear()
    for (const execution of this.#open.keys()) this.giveBack(execution)
  }

  /** Finds the address of an arena in the process, and has the process map an arena that it does not see. */
  #baseOf(arena: Arena): number | undefined {
    const base = arena.sharedBase
    if (base === undefined) return undefined
    const mapped = this.#arenas.get(arena)
    if (mapped !== undefined) return mapped.isMapped ? base : undefined
    const id = ++this.#lastId
    this.#arenas.set(arena, { id, isMapped: false })
    arena.viewers.add(this.#forget)
    const { path, size: bytes } = arena.mapping
    this.#send(plainFrame(OP.MAP, id, { number: arena.number, path, bytes }))
    return undefined
  }
}
