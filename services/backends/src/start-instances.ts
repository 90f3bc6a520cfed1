import { ServeError } from '@tutti/errors'

/** Instances that start at the same time. */
const START_PARALLELISM = 8

/**
 * Starts the first instance alone, so that a model that cannot be loaded fails once, and then the others several at a time.
 * After a failure no further one is started, and those that were are closed.
 *
 * @returns in the order of their placements.
 */
export async function startInstances<P, I extends { close(): Promise<void> }>(
  placements: readonly P[],
  start: (placement: P, index: number) => Promise<I>,
): Promise<I[]> {
  const instances: I[] = []
  const rest = [...placements.entries()]
  const startNext = async (): Promise<void> => {
    const next = rest.shift()
    if (next === undefined) return
    try {
      instances[next[0]] = await start(next[1], next[0])
    } catch (error) {
      rest.length = 0
      throw error
    }
  }
  const startOthers = async (): Promise<void> => {
    while (rest.length > 0) await startNext()
  }
  await startNext()
  const ended = await Promise.allSettled(Array.from({ length: START_PARALLELISM }, startOthers))
  const failed = ended.find((one) => one.status === 'rejected')
  if (failed === undefined) return instances
  await Promise.all(Object.values(instances).map((instance) => instance.close()))
  throw ServeError.from(failed.reason)
}
