import { printable } from '@tutti/chassis'
import type { ContainerLine } from './log-line.ts'
import type { LogSource } from './log-sources.ts'

/** Containers that are read at the same time. */
const AT_ONCE = 8

export interface ShowOptions {
  /** Reads the lines of a container. @param o.from - time of the last line that was read before, to go on from it. */
  read(
    source: LogSource,
    o: { readonly isFollowed: boolean; readonly from?: string | undefined },
  ): AsyncIterable<ContainerLine>
  isShown(text: string): boolean
  out(text: string): void
  /** Reports a container that cannot be read. @throws the error, if it concerns other containers too. */
  failed(source: LogSource, error: unknown): void
}

/** Last line that was read of each container, by `LogSource.key`. */
export type LastLines = Map<string, ContainerLine>

/**
 * Shows the lines of all containers in the order of their times.
 *
 * @param last - gets the last line of each container.
 * @returns the number of lines that were shown.
 */
export async function showLogs(
  sources: readonly LogSource[],
  last: LastLines,
  o: ShowOptions,
): Promise<number> {
  const found: { readonly source: LogSource; readonly line: ContainerLine }[] = []
  const left = sources.values()
  const work = async (): Promise<void> => {
    for (const source of left) {
      try {
        for await (const line of o.read(source, { isFollowed: false })) {
          last.set(source.key, line)
          if (o.isShown(line.text)) found.push({ source, line })
        }
      } catch (error) {
        o.failed(source, error)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  // A stable order: lines of one container and time stay as they are.
  found.sort((one, other) => one.line.timeMs - other.line.timeMs)
  for (const { source, line } of found) o.out(renderLine(source, line))
  return found.length
}

export interface FollowLogsOptions extends ShowOptions {
  /** Lists the present containers. */
  sources(): Promise<readonly LogSource[]>
  /** Waits until the next look for new containers. @returns false to end. */
  wait(): Promise<boolean>
}

/** Shows lines as they come, also of containers that start meanwhile. @throws the error that `failed` throws. */
export async function followLogs(last: LastLines, o: FollowLogsOptions): Promise<void> {
  const open = new Set<string>()
  const over = new Set<string>()
  const broken = Promise.withResolvers<never>()
  // It may come while nothing waits for it.
  broken.promise.catch(() => {})
  const follow = async (source: LogSource): Promise<void> => {
    open.add(source.key)
    try {
      await followLog(source, last, o)
      if (source.isOver) over.add(source.key)
    } catch (error) {
      o.failed(source, error)
    } finally {
      open.delete(source.key)
    }
  }
  do {
    for (const source of await o.sources()) {
      if (open.has(source.key) || over.has(source.key)) continue
      follow(source).catch(broken.reject)
    }
  } while (await Promise.race([o.wait(), broken.promise]))
}

async function followLog(source: LogSource, last: LastLines, o: ShowOptions): Promise<void> {
  const { key } = source
  const before = last.get(key)
  for await (const line of o.read(source, { isFollowed: true, from: before?.time || undefined })) {
    // Kubernetes begins with the second of that line.
    if (before !== undefined && isSeen(line, before)) continue
    last.set(key, line)
    if (o.isShown(line.text)) o.out(renderLine(source, line))
  }
}

function isSeen(line: ContainerLine, last: ContainerLine): boolean {
  return line.timeMs < last.timeMs || line.time === last.time
}

function renderLine({ pod, container }: LogSource, { text }: ContainerLine): string {
  return `[pod/${pod}/${container}] ${printable(text)}\n`
}
