import { assert } from '@tutti/errors'
import { Loan } from '@tutti/tensor'
import type { SharedMapping } from './shared-memory.ts'

/** Small tensors begin at such addresses: a cache line, and what vector instructions like. */
const ALIGNMENT = 64
/** Parts and large tensors do, so that none shares a page with another: a multiple of every system's pages. */
export const PAGE_BYTES = 65_536
/** Up to this many bytes travel in the frame itself: cheaper than a place in the arena. */
export const INLINE_BYTES = 8192
/** The arena with number N begins at N times this, for processes that map those of others. Offsets stay below 2^53. */
export const SPAN_BYTES = 2 ** 40
const MOST_SHARED = 8191
/** Bytes that are copied at most on the event loop: some milliseconds where each page of them is new. */
const AT_ONCE_BYTES = 1024 * 1024
/** Bytes that the thread pool, which has work of others too, copies at a time. */
const PIECE_BYTES = 4 * 1024 * 1024
/** A view that grows is at least so large. */
const LEAST_VIEW_BYTES = 1024 * 1024
/** An idle arena is trimmed after so long. */
const IDLE_MS = 1000
/** Bytes that are given back at a time: as long as a piece takes. */
const MOST_TRIMMED_BYTES = 16 * 1024 * 1024

interface Gap {
  offset: number
  size: number
}

/** Rounds a size up to what a tensor of that size takes, or a part. */
export function aligned(size: number): number {
  const alignment = size <= INLINE_BYTES ? ALIGNMENT : PAGE_BYTES
  return Math.ceil(size / alignment) * alignment
}

/** Arenas by the buffers over them. */
const arenas = new WeakMap<ArrayBufferLike, Arena>()
const freeNumbers: number[] = []
let lastNumber = 0

/** The arena that bytes lie in; undefined for ordinary memory. */
export function arenaOf(bytes: Uint8Array): Arena | undefined {
  return arenas.get(bytes.buffer)
}

/** A part of the arena. */
export interface ArenaPart {
  readonly offset: number
  /** Bytes; a multiple of a page. */
  readonly size: number
}

/**
 * Shares out a mapping that an instance sees too. First fit from the start, so that what is in use stays near the start and
 * the rest can be given back to the system. The file behind it is sparse: only what was once written takes memory.
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
  /** Called before the mapping ends: processes of other instances that see it. */
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

  /** Where it begins for processes of other instances that map it; undefined if there are too many. */
  get sharedBase(): number | undefined {
    const isLeft = freeNumbers.length > 0 || lastNumber < MOST_SHARED
    if (this.#number === undefined && isLeft && this.mapping.size <= SPAN_BYTES) {
      this.#number = freeNumbers.pop() ?? ++lastNumber
    }
    return this.#number && this.#number * SPAN_BYTES
  }

  /** As processes of other instances know it, once it has a shared base. */
  get number(): number {
    return this.#number ?? 0
  }

  /** @returns undefined if there is no gap of that size. */
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
   * As `free`, once its memory has gone back to the system, off the event loop: much of it takes as long as copying it.
   *
   * @param keep - as of `trimLater`, which follows.
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

  /** The size of the part with this offset; 0 if none is in use there. */
  sizeOf(offset: number): number {
    return this.#parts.get(offset) ?? 0
  }

  /**
   * Copies a tensor in. The caller owns the part.
   *
   * @returns when a large one is copied, off the event loop; undefined for one that is.
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

  /** A tensor in place. The lender keeps its part in use, and the mapping by `lend`, until it has been read. */
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

  /** Keeps the mapping while something of it is read. @param free - called when it is not. */
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
   * Copies a tensor out as `read` does, a large one off the event loop: mostly its time is that of new pages.
   *
   * @returns the tensor, and when it is there; undefined for one that is. Its part stays in use until then.
   */
  readLater(offset: number, size: number): readonly [Uint8Array, Promise<void> | undefined] {
    const { mapping } = this
    if (size <= AT_ONCE_BYTES) return [this.read(offset, size), undefined]
    this.#check(offset, size)
    const target = Buffer.allocUnsafeSlow(size)
    return [target, this.#inPieces(offset, target, (at, piece) => mapping.copyOutLater(at, piece))]
  }

  /** Gives the memory back once nothing is copied or read. */
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
   * Gives memory beyond `keep` bytes back to the system, from the end, and not all of much memory at once. Only while nothing is in use.
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

  /** As `trim`, all of it, if nothing is in use for a while. */
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

  /** A reader that came too late finds nothing, rather than what another wrote, or the end of this process. */
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
