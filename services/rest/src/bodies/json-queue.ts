import type { CancelSignal } from '@tutti/errors'

/** A body lets smaller ones pass that come later, until they have so many times its bytes: large ones wait, but not for ever. */
const PASSED_TIMES = 8

/** A body that is to be parsed. */
export interface JsonTurn {
  /** The name of its connection. */
  readonly connection: string
  readonly bytes: number
  /** Aborts when its caller has left. */
  readonly signal: CancelSignal
}

interface Job extends JsonTurn {
  /** Its place among those that wait: the least is next. */
  place: number
  start(): Promise<void>
}

/**
 * The bodies that wait for the JSON thread. It parses one body at a time, small ones before large ones, and the bodies of one
 * connection in their order. So the time that a client waits depends on what it sends itself, not on what others send.
 */
export class JsonQueue {
  /** Bodies of each connection, in their order. */
  readonly #waiting = new Map<string, Job[]>()
  /** Bytes of all bodies that had their turn: time would say less, since it depends on what else the machine does. */
  #parsedBytes = 0
  #isBusy = false

  /** Runs `work` when its turn comes. @returns the result of `work`; it never settles if `turn.signal` aborts before the turn. */
  run<T>(turn: JsonTurn, work: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>()
    const drop = (): void => this.#drop(job)
    const start = async (): Promise<void> => {
      turn.signal.removeEventListener('abort', drop)
      const done = work()
      resolve(done)
      await done.catch(() => {
        // The caller hears of it.
      })
    }
    const job: Job = { ...turn, place: this.#placeOf(turn), start }
    turn.signal.addEventListener('abort', drop, { once: true })
    const own = this.#waiting.get(turn.connection) ?? []
    own.push(job)
    this.#waiting.set(turn.connection, own)
    void this.#next()
    return promise
  }

  /** Forgets a body that waits: its call is over and counts it no more, and it would be held until its turn. */
  #drop(job: Job): void {
    const own = this.#waiting.get(job.connection) ?? []
    if (own[0] === job) this.#free(job.connection)
    else own.splice(own.indexOf(job), 1)
  }

  async #next(): Promise<void> {
    if (this.#isBusy) return
    const job = this.#take()
    if (job === undefined) return
    this.#isBusy = true
    await job.start()
    this.#isBusy = false
    this.#parsedBytes += job.bytes
    this.#free(job.connection)
    void this.#next()
  }

  #take(): Job | undefined {
    let first: Job | undefined
    for (const [job] of this.#waiting.values()) {
      if (job !== undefined && job.place < (first?.place ?? Infinity)) first = job
    }
    return first
  }

  /** The next body of a connection has waited for its own client until now. */
  #free(connection: string): void {
    const own = this.#waiting.get(connection)
    this.#waiting.delete(connection)
    own?.shift()
    const next = own?.[0]
    if (own === undefined || next === undefined) return
    next.place = this.#placeOf(next)
    // Behind the other connections, which may have the same place.
    this.#waiting.set(connection, own)
  }

  #placeOf({ bytes }: JsonTurn): number {
    return this.#parsedBytes + PASSED_TIMES * bytes
  }
}
