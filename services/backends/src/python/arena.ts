import { assert } from '@tutti/errors'
import { Loan } from '@tutti/tensor'
import type { SharedMapping } from './shared-memory.ts'

/** Small tensors begin at such addresses: a cache line, and what vector instructions like. */
const ALIGNMENT = 64
/**
 * Alignment of parts and large tensors, in bytes, so that none shares a page with another: a multiple of every system's page
 * size.
 */
export const PAGE_BYTES = 65_536
/** Most bytes that travel in the frame itself, which is cheaper than a place in the arena. */
export const INLINE_BYTES = 8192
/**
 * Span of an arena, in bytes: the arena with number N begins at N times this, for processes of other instances. Offsets stay
 * below 2^53.
 */
export const SPAN_BYTES = 2 ** 40
const MOST_SHARED = 8191
/** Bytes that are copied at most on the event loop: some milliseconds where each page of them is new. */
const AT_ONCE_BYTES = 1024 * 1024
/** Bytes that the thread pool, which has work of others too, copies at a time. */
const PIECE_BYTES = 4 * 1024 * 1024
/** A view that grows is at least so large. */
const LEAST_VIEW_BYTES = 1024 * 1024
/** Time after which an idle arena is trimmed. */
const IDLE_MS = 1000
/** Bytes that are given back at a time: as long as a piece takes. */
const MOST_TRIMMED_BYTES = 16 * 1024 * 1024

interface Gap {
  offset: number
  size: number
}

/** Rounds a size up to the bytes that a tensor or part of that size takes. */
export function aligned(size: number): number {
  const alignment = size <= INLINE_BYTES ? ALIGNMENT : PAGE_BYTES
  return Math.ceil(size / alignment) * alignment
}

/** Arenas by the buffers over them. */
const arenas = new WeakMap<ArrayBufferLike, Arena>()
const freeNumbers: number[] = []
let lastNumber = 0

/** Finds the arena that holds these bytes; undefined for ordinary memory. */
export function arenaOf(bytes: Uint8Array): Arena | undefined {
  return arenas.get(bytes.buffer)
}

/** Allocated part of an arena. */
export interface ArenaPart {
  readonly offset: number
  /** Bytes; a multiple of a page. */
  readonly size: number
}

/**
 * Allocates parts of a mapping that an instance sees too. It takes the first gap that fits, so that used parts stay near the
 * start and the rest can be given back to the system. The file behind the mapping is sparse: only pages that were written take
 * memory.
 */
export class Arena {
  readonly mapping: SharedMapping
  /** Free parts, ascending, never two that touch. */
  readonly #gaps: Gap[]
  readonly #parts = new Map<number, number>()
  /** Copies and discards that go on off the event loop. */
  readonly #unfinished = new Set<Promise<void>>()
  /** Bytes from the start that may hold memory: beyond, nothing was handed out since the last trim. */
  #highest = 0
  /** Over the start of the mapping, each larger than the one before. */
  readonly #views: ArrayBuffer[] = []
  /** Readers of what was lent. */
  #loans = 0
  #number: number | undefined
  /** Functions that are called before the mapping ends, for processes of other instances that see it. */
  readonly viewers = new Set<(arena: Arena) => void>()
  /** Set while `unmap` waits for them. */
  #returned: (() => void) | undefined
  #trimTimer: NodeJS.Timeout | undefined

  constructor(mapping: SharedMapping) {
    this.mapping = mapping
    this.#gaps = [{ offset: 0, size: mapping.size }]
  }

  get isIdle(): boolean {
    return this.#parts.size === 0
  }

  /** Offset of the arena for processes of other instances that map it; undefined if too many arenas are shared. */
  get sharedBase(): number | undefined {
    const isLeft = freeNumbers.length > 0 || lastNumber < MOST_SHARED
    if (this.#number === undefined && isLeft && this.mapping.size <= SPAN_BYTES) {
      this.#number = freeNumbers.pop() ?? ++lastNumber
    }
    return this.#number && this.#number * SPAN_BYTES
  }

  /** Number of the arena for processes of other instances; 0 before it has a shared base. */
  get number(): number {
    return this.#number ?? 0
  }

  /** Allocates a part of at least `bytes` bytes. The caller frees it. @returns undefined if no gap is large enough. */
  allocate(bytes: number): ArenaPart | undefined {
    const size = Math.max(PAGE_BYTES, Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES)
    const index = this.#gaps.findIndex((gap) => gap.size >= size)
    const gap = this.#gaps[index]
    if (gap === undefined) return undefined
    const { offset } = gap
    gap.offset += size
    gap.size -= size
    if (gap.size === 0) this.#gaps.splice(index, 1)
    this.#parts.set(offset, size)
    this.#highest = Math.max(this.#highest, offset + size)
    return { offset, size }
  }

  free({ offset }: Pick<ArenaPart, 'offset'>): void {
    const size = this.#parts.get(offset)
    assert(size !== undefined, `part ${offset} of an arena is not in use`)
    this.#parts.delete(offset)
    let at = this.#gaps.findIndex((gap) => gap.offset > offset)
    if (at === -1) at = this.#gaps.length
    this.#gaps.splice(at, 0, { offset, size })
    this.#join(at)
    this.#join(at - 1)
  }

  /**
   * Gives the memory of a part back to the system, then frees the part. The work is done off the event loop, since for much
   * memory it takes as long as a copy.
   *
   * @param keep - bytes that the following `trimLater` keeps.
   */
  async discard(part: ArenaPart, keep: number): Promise<void> {
    const end = part.offset + part.size
    const discarding = (async () => {
      for (let at = part.offset; at < end; at += MOST_TRIMMED_BYTES) {
        await this.mapping.discardLater(at, Math.min(MOST_TRIMMED_BYTES, end - at))
      }
      this.free(part)
      this.trimLater(keep)
    })()
    this.#unfinished.add(discarding)
    await discarding.finally(() => this.#unfinished.delete(discarding))
  }

  /** Finds the size of the part at this offset, in bytes; 0 if none is in use there. */
  sizeOf(offset: number): number {
    return this.#parts.get(offset) ?? 0
  }

  /**
   * Copies a tensor into a part that the caller owns.
   *
   * @returns a promise that resolves when a large tensor is copied, off the event loop; undefined if the tensor is copied
   * already.
   */
  write(offset: number, data: Uint8Array): Promise<void> | undefined {
    const { mapping } = this
    this.#check(offset, data.byteLength)
    if (data.byteLength > AT_ONCE_BYTES) {
      return this.#inPieces(offset, data, (at, piece) => mapping.copyInLater(at, piece))
    }
    if (data.byteLength > 0) mapping.copyIn(offset, data)
    return undefined
  }

  /**
   * Makes a view of a tensor in the arena. The lender keeps the part in use, and the mapping by `lend`, until the tensor has been
   * read.
   */
  view(offset: number, size: number): Uint8Array {
    this.#check(offset, size)
    const end = offset + size
    let buffer = this.#views.at(-1)
    if (buffer === undefined || buffer.byteLength < end) {
      // V8 counts a view as memory, so it is hardly larger than what is in use.
      const bytes = 2 ** Math.ceil(Math.log2(Math.max(end, LEAST_VIEW_BYTES)))
      buffer = this.mapping.view(Math.min(bytes, this.mapping.size))
      this.#views.push(buffer)
      arenas.set(buffer, this)
    }
    return new Uint8Array(buffer, offset, size)
  }

  /** Keeps the mapping until the returned loan is over. @param free - called at that time. */
  lend(free: () => void): Loan {
    this.#loans += 1
    return new Loan(() => {
      this.#loans -= 1
      free()
      if (this.#loans === 0) this.#returned?.()
    })
  }

  /** Copies a small tensor out, or one that the model could change while it is read. */
  read(offset: number, size: number): Uint8Array {
    this.#check(offset, size)
    const target = Buffer.allocUnsafeSlow(size)
    if (size > 0) this.mapping.copyOut(offset, target)
    return target
  }

  /**
   * Copies a tensor out as `read` does. A large one is copied off the event loop, because mostly the new pages take the time.
   *
   * @returns the tensor, and a promise that resolves when it is copied; undefined if it is copied already. Its part stays in use
   * until then.
   */
  readLater(offset: number, size: number): readonly [Uint8Array, Promise<void> | undefined] {
    const { mapping } = this
    if (size <= AT_ONCE_BYTES) return [this.read(offset, size), undefined]
    this.#check(offset, size)
    const target = Buffer.allocUnsafeSlow(size)
    return [target, this.#inPieces(offset, target, (at, piece) => mapping.copyOutLater(at, piece))]
  }

  /** Unmaps the arena once nothing is copied or read. */
  async unmap(): Promise<void> {
    if (this.#loans > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#returned = resolve
      await promise
    }
    await Promise.allSettled(this.#unfinished)
    this.cancelTrim()
    for (const viewer of this.viewers) viewer(this)
    if (this.#number !== undefined) freeNumbers.push(this.#number)
    this.#detachViews()
    this.#highest = 0
    this.mapping.unmap()
  }

  /**
   * Gives memory beyond `keep` bytes back to the system, from the end, at most 16 MiB a call. The arena must be idle.
   *
   * @returns true if there is more to give back.
   */
  trim(keep: number): boolean {
    assert(this.isIdle, 'an arena in use is not trimmed')
    const least = Math.ceil(keep / PAGE_BYTES) * PAGE_BYTES
    const to = Math.min(this.mapping.size, Math.ceil(this.#highest / PAGE_BYTES) * PAGE_BYTES)
    const from = Math.max(least, to - MOST_TRIMMED_BYTES)
    if (from < to) this.mapping.discard(from, to - from)
    this.#detachViews()
    this.#highest = Math.min(this.#highest, from)
    return from > least
  }

  /** Trims the arena to `keep` bytes once it has been idle for a second. */
  trimLater(keep: number): void {
    if (!this.isIdle || this.#highest <= keep) return
    this.cancelTrim()
    const trim = (): void => {
      if (this.isIdle && this.trim(keep)) this.#trimTimer = setTimeout(trim, 0).unref()
    }
    this.#trimTimer = setTimeout(trim, IDLE_MS).unref()
  }

  cancelTrim(): void {
    clearTimeout(this.#trimTimer)
  }

  /** @param copy - copies a piece of the bytes, from or to an offset of the mapping. */
  #inPieces(
    offset: number,
    bytes: Uint8Array,
    copy: (offset: number, piece: Uint8Array) => Promise<void>,
  ): Promise<void> {
    const copying = (async () => {
      for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) {
        await copy(offset + at, bytes.subarray(at, at + PIECE_BYTES))
      }
    })()
    this.#unfinished.add(copying)
    return copying.finally(() => this.#unfinished.delete(copying))
  }

  /** Detaches views, so that a late reader finds nothing rather than another's bytes, and does not crash the process. */
  #detachViews(): void {
    for (const view of this.#views.splice(0)) view.transfer(0)
  }

  /** Joins a gap with the next one if they touch. */
  #join(at: number): void {
    const gap = this.#gaps[at]
    const next = this.#gaps[at + 1]
    if (gap === undefined || next === undefined || gap.offset + gap.size !== next.offset) return
    gap.size += next.size
    this.#gaps.splice(at + 1, 1)
  }

  #check(offset: number, size: number): void {
    const fits = offset >= 0 && size >= 0 && offset + size <= this.mapping.size
    assert(fits, `${size} bytes at ${offset} are not in the arena`)
  }
}
