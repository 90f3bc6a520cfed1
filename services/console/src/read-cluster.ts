import { ServeError } from '@tutti/errors'
import type { ClusterState, UnreadyResource } from './api/cluster.ts'
import type { ClusterSource } from './console-source.ts'

/** Most resources in one answer. */
const MAX_RESOURCES = 100

/**
 * Reads the cluster's Models and Ensembles that are not Ready, at most 100. An error is returned as `failure`.
 *
 * @param o.isWanted - returns true for resources that the page shows.
 * @param o.inTime - waits for the answer; rejects if it takes too long.
 */
export async function readCluster(
  source: ClusterSource,
  o: {
    readonly isWanted: (one: UnreadyResource) => boolean
    readonly inTime: <T>(asked: Promise<T>, who: string) => Promise<T>
  },
): Promise<ClusterState> {
  const { namespace } = source
  try {
    const found = (await o.inTime(source.unready(), 'the API server')).filter(o.isWanted)
    const shown = found.slice(0, MAX_RESOURCES)
    return { namespace, unready: shown, leftOut: found.length - shown.length, failure: '' }
  } catch (error) {
    return { namespace, unready: [], leftOut: 0, failure: ServeError.from(error).message }
  }
}
