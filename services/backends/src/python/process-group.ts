import { ServeError } from '@tutti/errors'
import type { Placement } from '../placement.ts'
import type { ForkedProcess } from './zygote.ts'

/** A process that lives, or is being forked. */
interface Generation {
  /** Those that no instance has yet. */
  readonly channels: Promise<ForkedProcess[]>
  /** Resolves when the instances that came before have started, or have failed to. */
  turn: Promise<void>
  /** Error of the first one that failed to start. */
  failure?: ServeError
}

/**
 * Instances that are to be in one process, mostly a single one. The first to start forks it, with a channel for each; the others
 * join, one after the other, as a model may prepare in its first `initialize` what the others use too. When the process ends,
 * the next to start forks another one.
 */
export class ProcessGroup {
  readonly #fork: () => Promise<ForkedProcess[]>
  #live: Generation | undefined

  /** @param fork - forks a process with a channel for each instance. */
  constructor(fork: () => Promise<ForkedProcess[]>) {
    this.#fork = fork
  }

  /**
   * Gives an instance its channel of the process. An instance has one of each process: it starts again only after the end.
   *
   * @param load - resolves when the instance has started; if it rejects, it has ended the process.
   * @throws ServeError what `load` throws, for this instance or one before it; ENGINE_STOPPED if the process ended otherwise.
   */
  async start<T>(load: (process: ForkedProcess) => Promise<T>): Promise<T> {
    this.#live ??= this.#begin()
    const live = this.#live
    const before = live.turn
    const { promise, resolve } = Promise.withResolvers<void>()
    live.turn = promise
    try {
      await before
      if (live.failure !== undefined) throw live.failure
      const process = (await live.channels).shift()
      if (process === undefined) throw hasEnded()
      return await load(process)
    } catch (error) {
      live.failure ??= ServeError.from(error)
      throw error
    } finally {
      resolve()
    }
  }

  #begin(): Generation {
    const channels = this.#fork()
    const live: Generation = { channels, turn: Promise.resolve() }
    const ended = channels.then(
      ([first]) => first?.ended,
      () => undefined,
    )
    void ended.then(() => this.#end(live))
    return live
  }

  async #end(live: Generation): Promise<void> {
    if (this.#live === live) this.#live = undefined
    const left = await live.channels.catch(() => [])
    for (const { frames } of left.splice(0)) frames.destroy()
  }
}

/** An instance, and what gives it its process. */
export interface GroupedPlacement extends Placement {
  readonly processes: ProcessGroup
}

/**
 * Finds the processes of instances: one for each; or, if they share, one for those of an instance group that are on one device.
 *
 * @param fork - gets how the process is called in the log, as its instance or as its first and last one, and their number.
 */
export function groupByProcess(
  placements: readonly Placement[],
  isShared: boolean,
  fork: (name: string, instances: number) => Promise<ForkedProcess[]>,
): readonly GroupedPlacement[] {
  const keyOf = ([index, placement]: readonly [number, Placement]): unknown => {
    const { group, kind, deviceId, policy } = placement
    return isShared ? JSON.stringify([group, kind, deviceId, policy]) : index
  }
  const grouped: GroupedPlacement[] = []
  for (const members of Map.groupBy(placements.entries(), keyOf).values()) {
    const [first = '', ...rest] = members.map(([, { name }]) => name)
    const name = [first, ...rest.slice(-1)].join('..')
    const processes = new ProcessGroup(() => fork(name, members.length))
    for (const [index, placement] of members) grouped[index] = { ...placement, processes }
  }
  return grouped
}

function hasEnded(): ServeError {
  return new ServeError('ENGINE_STOPPED', 'the process that the instance shares has ended')
}
