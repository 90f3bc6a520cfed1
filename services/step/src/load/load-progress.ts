import { type Clock, repeat } from '@tutti/chassis'
import type { StepEvents } from '../log-events.ts'

/** A load that was requested, as LoadProgress shows it. */
export interface ShownLoad {
  readonly model: string
  /** Tells that the load no longer waits for another model. */
  begin(): void
  /** Tells what the load does now, e.g. `version 1, engine python`. */
  readonly report: (doing: string) => void
  end(): void
}

const TELL_MS = 5000
/** Models that a line names. */
const NAMED = 4

/** A load that is not over, and what it waits for. */
export interface LoadState {
  readonly model: string
  readonly doing: string
}

/** Keeps how far the loads are, and logs it every 5 s while there are any. */
export class LoadProgress {
  readonly #clock: Pick<Clock, 'now' | 'setTimer'>
  readonly #events: Pick<StepEvents, 'modelsLoading'>
  /** Loads that run, in the order in which they began. */
  readonly #begun = new Map<ShownLoad, number>()
  /** Work of each load, in the order of their requests. */
  readonly #doing = new Map<ShownLoad, string>()
  #total = 0
  #done = 0
  #stop: (() => void) | undefined

  constructor(clock: Pick<Clock, 'now' | 'setTimer'>, events: Pick<StepEvents, 'modelsLoading'>) {
    this.#clock = clock
    this.#events = events
  }

  /** Lists the loads that are not over. */
  loads(): readonly LoadState[] {
    return [...this.#doing].map(([{ model }, doing]) => ({ model, doing }))
  }

  open(model: string): ShownLoad {
    this.#stop ??= repeat(this.#clock, TELL_MS, () => this.#tell())
    this.#total += 1
    const load = {
      model,
      begin: () => void this.#begun.set(load, this.#clock.now()),
      report: (doing: string) => void this.#doing.set(load, doing),
      end: () => this.#end(load),
    }
    load.report('the loads of other models')
    return load
  }

  #end(load: ShownLoad): void {
    this.#begun.delete(load)
    this.#doing.delete(load)
    this.#done += 1
    if (this.#done < this.#total) return
    this.#stop?.()
    this.#stop = undefined
    this.#total = this.#done = 0
  }

  #tell(): void {
    const now = this.#clock.now()
    const longest = [...this.#begun].slice(0, NAMED).map(([{ model }, begunAt]) => {
      return { model, elapsedMs: Math.round(now - begunAt) }
    })
    this.#events.modelsLoading(this.#done, this.#total, longest)
  }
}
