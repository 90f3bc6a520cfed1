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
 * Inputs that lie in the arenas of other instances: this one's process maps these arenas privately and reads the inputs in place,
 * without a copy. What the model writes into them stays its own.
 */
export class Borrowings {
  readonly #send: (frame: Buffer) => void
  readonly #arenas = new Map<Arena, Mapped>()
  /** By execution. */
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
   * @returns where the process sees it; undefined if it is to be copied: it is small, or ordinary memory, the process does not see
   *   its arena (yet), or has it already for something else, and would see there what a model writes.
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

  /** The process has answered whether it could map an arena. One that it could not is not asked for again. */
  answered(id: number, problem: unknown): void {
    for (const mapped of this.#arenas.values()) {
      if (mapped.id === id) mapped.isMapped = problem === undefined
    }
  }

  /** The model has let go of what the execution had, if it had something. */
  giveBack(execution: number): void {
    const borrowed = this.#open.get(execution)
    this.#open.delete(execution)
    for (const giveBack of borrowed?.giveBacks ?? []) giveBack()
  }

  /** As `giveBack`, told by the process after the execution. @throws ServeError MALFORMED_MESSAGE if it had nothing. */
  returned(execution: number, isExecuting: boolean): void {
    if (isExecuting || !this.#open.has(execution)) {
      throw badFrame(`a return of what execution ${execution} does not have`)
    }
    this.giveBack(execution)
  }

  /** From now on inputs are copied: the model writes into them, and the system's copies, page by page, take several times as long. */
  stop(): void {
    this.#isStopped = true
  }

  /** The process has ended. */
  close(): void {
    this.stop()
    for (const arena of this.#arenas.keys()) arena.viewers.delete(this.#forget)
    this.#arenas.clear()
    for (const execution of this.#open.keys()) this.giveBack(execution)
  }

  /** Where an arena begins for the process; it is asked to map one that it does not see. */
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
