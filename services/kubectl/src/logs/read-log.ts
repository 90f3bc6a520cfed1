import { isNotFound, KubeError, objectPath, POD } from '@tutti/kube'
import type { Cluster } from '../cluster.ts'
import { type ContainerLine, parseLogLine } from './log-line.ts'
import type { LogSource } from './log-sources.ts'

export interface ReadOptions {
  readonly isPrevious: boolean
  /** True to wait for further lines. */
  readonly isFollowed: boolean
  /** Time of the first line to read, in RFC 3339. */
  readonly from?: string | undefined
  /** Greatest age of lines to read, in milliseconds. */
  readonly sinceMs?: number | undefined
  /** Number of last lines to read. */
  readonly tail?: number | undefined
}

/** Longest silence of a log that is followed: containers may be silent for days. */
const LONGEST_MS = 2 ** 31 - 1
/** Longest silence of a log that is not followed. */
const IDLE_MS = 30_000
/** A line without a time comes before all others. */
const NO_TIME = { time: '', timeMs: 0 }

/** Yields the lines of one container, in their order. @throws KubeError */
export async function* readLog(
  { transport }: Pick<Cluster, 'transport'>,
  { namespace, pod, container }: LogSource,
  o: ReadOptions,
): AsyncGenerator<ContainerLine> {
  const { isPrevious, isFollowed, from, sinceMs, tail } = o
  const { lines } = await transport.stream({
    method: 'GET',
    path: objectPath(POD, { namespace, name: pod }, 'log'),
    query: {
      container,
      timestamps: true,
      previous: isPrevious,
      follow: isFollowed,
      sinceTime: from,
      sinceSeconds: sinceMs === undefined ? undefined : Math.max(1, Math.ceil(sinceMs / 1000)),
      tailLines: tail,
    },
    accept: '*/*',
    idleMs: isFollowed ? LONGEST_MS : IDLE_MS,
  })
  let last: ContainerLine | typeof NO_TIME = NO_TIME
  for await (const text of lines) {
    // The kubelet's own words, of a file that it cannot read say, have no time.
    const line: ContainerLine = parseLogLine(text) ?? { time: last.time, timeMs: last.timeMs, text }
    last = line
    yield line
  }
}

/** Tells whether an error says that a container is gone or has no lines, since it has not started or not restarted. */
export function hasNoLog(error: unknown): boolean {
  return isNotFound(error) || (error instanceof KubeError && error.status === 400)
}

/** Tells whether an error concerns one container alone, e.g. because its node does not answer. */
export function isOfContainer(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status >= 500
}
