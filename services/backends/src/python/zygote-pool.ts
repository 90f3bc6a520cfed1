import { Zygote, type ZygoteSpec } from './zygote.ts'

/** A zygote without users stays so long: loads come in groups, and each load looks at the model first. */
const LINGER_MS = 10_000

interface Entry {
  readonly key: string
  users: number
  zygote: Promise<Zygote> | undefined
  timer: NodeJS.Timeout | undefined
}

/** Lease of one kind of zygote. The holder releases it. */
export interface ZygoteLease {
  /** Returns a live zygote. It is started, or started again, if there is none. */
  zygote(): Promise<Zygote>
  release(): void
}

const pools = new WeakMap<object, ZygotePool>()

/** Finds the pool that engines with one owner share; makes it at the first call. */
export function zygotesOf(owner: object): ZygotePool {
  const pool = pools.get(owner) ?? new ZygotePool()
  pools.set(owner, pool)
  return pool
}

/** Pool of zygotes by their specification. All models with the same one share a zygote. */
export class ZygotePool {
  readonly #entries = new Map<string, Entry>()

  lease(spec: ZygoteSpec): ZygoteLease {
    const key = JSON.stringify(spec)
    const entry = this.#entries.get(key) ?? { key, users: 0, zygote: undefined, timer: undefined }
    this.#entries.set(key, entry)
    clearTimeout(entry.timer)
    entry.users += 1
    if (entry.users === 1) hold(entry, true)
    let isReleased = false
    return {
      zygote: () => liveZygote(entry, spec),
      release: () => {
        if (isReleased) return
        isReleased = true
        this.#release(entry)
      },
    }
  }

  #release(entry: Entry): void {
    entry.users -= 1
    if (entry.users > 0) return
    hold(entry, false)
    entry.timer = setTimeout(() => {
      this.#entries.delete(entry.key)
      void entry.zygote?.then(
        (zygote) => zygote.close(),
        () => {},
      )
    }, LINGER_MS).unref()
  }
}

function liveZygote(entry: Entry, spec: ZygoteSpec): Promise<Zygote> {
  entry.zygote ??= startZygote(entry, spec)
  return entry.zygote
}

function startZygote(entry: Entry, spec: ZygoteSpec): Promise<Zygote> {
  const starting = Zygote.start(spec)
  const forget = (): void => {
    if (entry.zygote === starting) entry.zygote = undefined
  }
  void starting.then((zygote) => zygote.exited.then(forget), forget)
  return starting
}

/** Lets a zygote keep the process alive while it has users. */
function hold(entry: Entry, isHeld: boolean): void {
  void entry.zygote?.then(
    (zygote) => zygote.hold(isHeld),
    () => {},
  )
}
