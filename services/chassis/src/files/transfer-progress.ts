import type { Clock } from '../calls/call-context.ts'
import { repeat } from '../calls/repeat.ts'
import type { Logger } from '../log/log.ts'
import { TRANSFER_EVENTS as EVENTS } from '../log/log-events.ts'
import type { StatusLine } from '../terminal/status-line.ts'

/** How far a transfer is, in bytes. */
export interface TransferState {
  readonly bytes: number
  /** Size of the whole transfer; absent if the sender does not say it. */
  readonly totalBytes?: number | undefined
}

/** Takes the progress of one transfer. */
export interface Transfer {
  /** Begins an attempt. @param state - includes the bytes that earlier attempts have left. */
  begin(state: TransferState): void
  /** Adds bytes that have arrived since the last call. */
  add(bytes: number): void
  /** Ends the transfer. @param isWhole - true if everything has arrived. */
  end(isWhole: boolean): void
}

/** Opens a transfer. @param what - name of its content, such as an address. */
export type OpenTransfer = (what: string) => Transfer

export interface TransferProgressOptions {
  /** Status line that shows the progress; if absent, log lines do. */
  readonly statusLine?: Pick<StatusLine, 'show' | 'hide'> | undefined
  readonly log: Pick<Logger, 'info'>
  readonly clock: Pick<Clock, 'now' | 'setTimer'>
}

const DRAW_MS = 200
const TELL_MS = 5000
const BAR_LENGTH = 20
/** Transfers that are named where many run at a time, as a repository has. */
const NAMED = 4

/** A transfer that is under way. */
interface Current {
  readonly what: string
  readonly startedAt: number
  received: number
  /** Absent until bytes come. */
  state?: TransferState
}

/**
 * Shows the progress of all transfers of a process together: as a bar on a terminal, else as a log line every 5 s. Each transfer
 * that arrives whole gets a log line at its end.
 */
export class TransferProgress {
  readonly #options: TransferProgressOptions
  readonly #current = new Set<Current>()
  /** Bytes of transfers that ended while others went on. */
  #endedBytes = 0
  /** Bytes of all transfers, for the rate: it never goes back, as their states do when an attempt fails. */
  #received = 0
  #marks: { readonly at: number; readonly received: number }[] = []
  #stop: (() => void) | undefined

  constructor(o: TransferProgressOptions) {
    this.#options = o
  }

  /** Sums the transfers that are under way, with those that ended while others went on; undefined if there is none. */
  state(): TransferState | undefined {
    return this.#current.size === 0 ? undefined : this.#sum()
  }

  /** Opens a transfer. It is shown from its first `begin` on. */
  open(what: string): Transfer {
    const transfer: Current = { what, startedAt: this.#options.clock.now(), received: 0 }
    const start = (): void => {
      this.#current.add(transfer)
      this.#stop ??= this.#start()
    }
    return {
      begin: (state) => {
        transfer.state = state
        start()
      },
      add: (bytes) => {
        const { bytes: before, totalBytes } = transfer.state ?? { bytes: 0 }
        transfer.state = { bytes: before + bytes, totalBytes }
        transfer.received += bytes
        this.#received += bytes
      },
      end: (isWhole) => this.#end(transfer, isWhole),
    }
  }

  #start(): () => void {
    const { statusLine, clock } = this.#options
    this.#endedBytes = 0
    this.#marks = [{ at: clock.now(), received: this.#received }]
    const stop = repeat(clock, statusLine === undefined ? TELL_MS : DRAW_MS, () => this.#show())
    return () => {
      stop()
      statusLine?.hide(this)
    }
  }

  #end(transfer: Current, isWhole: boolean): void {
    if (!this.#current.delete(transfer)) return
    const { what, received, startedAt } = transfer
    this.#endedBytes += transfer.state?.bytes ?? 0
    if (this.#current.size === 0) {
      this.#stop?.()
      this.#stop = undefined
    }
    if (!isWhole) return
    const durationMs = Math.round(this.#options.clock.now() - startedAt)
    const rate =
      durationMs === 0 ? {} : { bytesPerSecond: Math.round((received / durationMs) * 1000) }
    this.#options.log.info(EVENTS.ended, { uri: what, bytes: received, durationMs, ...rate })
  }

  #show(): void {
    const { statusLine, log } = this.#options
    const { bytes, totalBytes } = this.#sum()
    const bytesPerSecond = this.#rate()
    const names = [...this.#current].map(({ what }) => what)
    if (statusLine !== undefined) {
      const [first = '', ...others] = names.map(lastPart)
      const what = others.length === 0 ? first : `${first} and ${others.length} more`
      return statusLine.show(this, renderBar({ bytes, totalBytes }, bytesPerSecond, what))
    }
    log.info(EVENTS.underWay, {
      uris: names.slice(0, NAMED),
      ...(names.length > NAMED && { more: names.length - NAMED }),
      bytes,
      ...(totalBytes !== undefined && { totalBytes }),
      bytesPerSecond: Math.round(bytesPerSecond),
    })
  }

  #sum(): TransferState {
    let bytes = this.#endedBytes
    let totalBytes: number | undefined = this.#endedBytes
    for (const { state = { bytes: 0 } } of this.#current) {
      bytes += state.bytes
      if (state.totalBytes === undefined) totalBytes = undefined
      else if (totalBytes !== undefined) totalBytes += state.totalBytes
    }
    return { bytes, totalBytes }
  }

  /** @returns bytes each second, of the last five seconds. */
  #rate(): number {
    const now = this.#options.clock.now()
    this.#marks.push({ at: now, received: this.#received })
    // Timers are late: the first one is to be as old as that.
    while (now - (this.#marks[1]?.at ?? now) >= TELL_MS) this.#marks.shift()
    const [first = { at: now, received: 0 }] = this.#marks
    return now === first.at ? 0 : ((this.#received - first.received) / (now - first.at)) * 1000
  }
}

/** Finds the last part of an address: a line of a terminal has no place for all of it. */
function lastPart(what: string): string {
  return /[^/]+(?=\/*$)/.exec(what)?.[0] ?? what
}

/** @param rate - bytes each second. */
function renderBar({ bytes, totalBytes }: TransferState, rate: number, what: string): string {
  const speed = `${formatBytes(rate)}/s`
  if (!totalBytes) return `${formatBytes(bytes)}, ${speed}  ${what}`
  const share = Math.min(1, bytes / totalBytes)
  const bar = '#'.repeat(Math.floor(share * BAR_LENGTH)).padEnd(BAR_LENGTH, '-')
  const percent = `${Math.floor(share * 100)}`.padStart(3)
  return `[${bar}] ${percent} %  ${formatBytes(bytes)} of ${formatBytes(totalBytes)}, ${speed}  ${what}`
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

/** Formats bytes with three digits, in powers of 1000. */
function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1000 ** power
  return `${power === 0 ? Math.round(value) : value.toPrecision(value < 1000 ? 3 : 4)} ${UNITS[power]}`
}
