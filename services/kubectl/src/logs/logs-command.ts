import {
  type FlagTable,
  type FlagValues,
  flagRefusal,
  type ProcessEnvironment,
  printable,
  sleep,
  systemClock,
} from '@tutti/chassis'
import { withFlags } from '@tutti/command-line/command'
import { ServeError } from '@tutti/errors'
import { POD } from '@tutti/kube'
import { CLUSTER_FLAGS, type Cluster, Reader, withCluster } from '../cluster.ts'
import { parseDuration } from '../duration.ts'
import { SERVING_SELECTOR } from '../status/read-state.ts'
import { findTarget, type Target } from '../targets.ts'
import { type ContainerLine, isAboutRequest } from './log-line.ts'
import { type LogSource, sourcesOf } from './log-sources.ts'
import { hasNoLog, isOfContainer, type ReadOptions, readLog } from './read-log.ts'
import { type FollowLogsOptions, followLogs, type LastLines, showLogs } from './show-logs.ts'

const ALL = -1
const DEFAULT_TAIL = 1000

export const LOGS_FLAGS = {
  ...CLUSTER_FLAGS,
  request: {
    type: 'string',
    description:
      'Show only lines about the request with this id, or trace id, of the routers too. The exit code is 1 if there is none.',
  },
  follow: {
    type: 'bool',
    aliases: ['f'],
    default: false,
    description: 'Go on with lines as they come, of pods that start later too.',
  },
  previous: {
    type: 'bool',
    aliases: ['p'],
    default: false,
    description: 'Show the lines of containers before they were started again.',
  },
  since: { type: 'string', description: 'Show only lines that are newer, such as 90s or 1h.' },
  tail: {
    type: 'int',
    min: 0,
    words: { all: ALL },
    unit: 'lines',
    description: `Show the last lines of each container, or all. Default: all with --since, --request or --previous, else ${DEFAULT_TAIL}.`,
  },
} as const satisfies FlagTable
type LogsFlags = FlagValues<typeof LOGS_FLAGS>

/** Time between two looks for containers that have started. */
const LOOK_MS = 2000

export const logsCommand = withFlags(
  { usage: 'kubectl tutti logs NAME|model/NAME|ensemble/NAME|router [FLAGS]', flags: LOGS_FLAGS },
  async ({ flags, positionals }, environment) => {
    const [text, ...more] = positionals
    if (text === undefined || more.length > 0) {
      throw new ServeError('FLAG_INVALID', `got ${positionals.length} names, want one`)
    }
    if (flags.follow && flags.previous) {
      throw flagRefusal('--previous', 'got --follow too, and what has ended writes no more lines')
    }
    if (flags.request === '') throw flagRefusal('--request', 'got "", want an id')
    const sinceMs = flags.since === undefined ? undefined : parseDuration('--since', flags.since)
    return await withCluster(flags, environment, async (cluster) => {
      const { namespace } = cluster
      const target = await findTarget(new Reader(cluster.client), { namespace, text })
      return await new LogView({ cluster, target, flags, sinceMs, environment }).show()
    })
  },
)

interface LogViewOptions {
  readonly cluster: Cluster
  readonly target: Target
  readonly flags: LogsFlags
  readonly sinceMs: number | undefined
  readonly environment: ProcessEnvironment
}

/** Logs that one command shows. */
class LogView implements FollowLogsOptions {
  readonly #options: LogViewOptions
  /** Reasons why logs cannot be read, by container. */
  readonly #failures = new Map<string, string>()

  constructor(o: LogViewOptions) {
    this.#options = o
  }

  /** @returns the exit code. */
  async show(): Promise<number> {
    const { target, flags, cluster, environment } = this.#options
    const last: LastLines = new Map()
    const sources = await this.sources()
    const lines = await showLogs(sources, last, this)
    if (flags.follow) await followLogs(last, this)
    if (this.#failures.size > 0) return 1
    if (lines > 0 || flags.follow) return 0
    const place = `${target.title} in namespace ${cluster.namespace}`
    environment.err(`${noLines(place, sources.length, flags)}\n`)
    return flags.request === undefined ? 0 : 1
  }

  async sources(): Promise<readonly LogSource[]> {
    const { cluster, target, flags } = this.#options
    const { client, namespace } = cluster
    const { items } = await client.list(POD, { namespace, labelSelector: SERVING_SELECTOR })
    const withRouters = target.ensemble !== undefined || flags.request !== undefined
    return sourcesOf(items, target, { withRouters, isPrevious: flags.previous })
  }

  read(
    source: LogSource,
    o: Pick<ReadOptions, 'isFollowed' | 'from'>,
  ): AsyncIterable<ContainerLine> {
    const { cluster, flags, sinceMs } = this.#options
    const bounds = o.from === undefined ? { sinceMs, tail: tailOf(flags) } : {}
    return readLog(cluster, source, { ...o, ...bounds, isPrevious: flags.previous })
  }

  isShown(text: string): boolean {
    const { request } = this.#options.flags
    return request === undefined || isAboutRequest(text, request)
  }

  out(text: string): void {
    this.#options.environment.out(text)
  }

  /** Reports why logs cannot be read, each reason once. */
  failed({ key, pod, container }: LogSource, error: unknown): void {
    if (hasNoLog(error)) return
    if (!isOfContainer(error)) throw error
    const { message } = error
    if (this.#failures.get(key) === message) return
    this.#failures.set(key, message)
    const text = `not shown: pod ${pod}, container ${container}: ${printable(message)}`
    this.#options.environment.err(`${text}\n`)
  }

  async wait(): Promise<boolean> {
    await sleep(LOOK_MS, { clock: systemClock })
    return true
  }
}

function tailOf({ tail, since, request, previous }: LogsFlags): number | undefined {
  if (tail !== undefined) return tail === ALL ? undefined : tail
  const isBounded = since !== undefined || request !== undefined || previous
  return isBounded ? undefined : DEFAULT_TAIL
}

function noLines(place: string, containers: number, { request, previous }: LogsFlags): string {
  if (containers === 0) {
    const what = previous ? 'container that was started again' : 'container that has started'
    return `no ${what} of ${place}; kubectl tutti status says more`
  }
  const read = `${containers} container${containers === 1 ? '' : 's'} of ${place}`
  if (request === undefined) return `no lines in ${read}`
  return `no lines about request '${request}' in ${read}. Only requests that fail leave lines: by a fault of Tutti always, else where debug lines are written (spec.logVerbose: 1 of the Router)`
}
