import type { Clock } from '../calls/call-context.ts'
import { repeat } from '../calls/repeat.ts'
import type { StatusLine } from './status-line.ts'

export interface ElapsedOptions {
  /** Name of the work that is under way. */
  readonly what: string
  /** Describes what the work does just now; '' if that is not known. */
  readonly detail: () => string
  readonly statusLine?: Pick<StatusLine, 'show' | 'hide'> | undefined
  /** Called every 10 s where there is no terminal. */
  tell(elapsedMs: number): void
  readonly clock: Pick<Clock, 'now' | 'setTimer'>
}

const DRAW_MS = 1000
const TELL_MS = 10_000

/**
 * Shows how long some work has taken so far: each second on a terminal, else through `tell` every 10 s.
 *
 * @returns a function that ends it.
 */
export function showElapsed(o: ElapsedOptions): () => void {
  const { what, statusLine, clock } = o
  const startedAt = clock.now()
  const owner = {}
  const stop = repeat(clock, statusLine === undefined ? TELL_MS : DRAW_MS, () => {
    const elapsedMs = clock.now() - startedAt
    if (statusLine === undefined) return o.tell(elapsedMs)
    statusLine.show(owner, `${what}: ${Math.round(elapsedMs / 1000)} s  ${o.detail()}`.trimEnd())
  })
  return () => {
    stop()
    statusLine?.hide(owner)
  }
}
