import type { WatchEvent } from '../client.ts'
import { type KubeError, noAnswer } from '../kube-error.ts'
import type { KubeObject } from '../object.ts'
import { isRecord, toStored } from '../parse-object.ts'
import { fromStatus } from '../transport/to-kube-error.ts'

const INITIAL_END = 'k8s.io/initial-events-end'

/**
 * Converts the lines of a watch to events.
 *
 * @param where - the request, for messages.
 * @throws KubeError of the server for an ERROR event, or `BadResponse` for a line that is no event.
 */
export async function* readEvents<T extends KubeObject>(
  lines: AsyncIterable<string>,
  where: string,
): AsyncGenerator<WatchEvent<T>> {
  for await (const line of lines) yield parseEvent<T>(line, where)
}

/** Parses one line of a watch. @throws KubeError as `readEvents`. */
export function parseEvent<T extends KubeObject>(line: string, where: string): WatchEvent<T> {
  const event = parseJson(line)
  const { type, object } = isRecord(event) ? event : {}
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object: toStored<T>(object, where) }
    case 'BOOKMARK':
      return toBookmark(object, line, where)
    case 'ERROR':
      throw fromStatus(object, 500)
    default:
      throw badEvent(line, where)
  }
}

function toBookmark<T extends KubeObject>(
  object: unknown,
  line: string,
  where: string,
): WatchEvent<T> {
  const metadata = isRecord(object) ? object['metadata'] : undefined
  if (!isRecord(metadata)) throw badEvent(line, where)
  const { resourceVersion, annotations } = metadata
  if (typeof resourceVersion !== 'string' || resourceVersion === '') throw badEvent(line, where)
  const isInitialEnd = isRecord(annotations) && annotations[INITIAL_END] === 'true'
  return { type: 'BOOKMARK', resourceVersion, isInitialEnd }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    // Not an event either way.
    return undefined
  }
}

function badEvent(line: string, where: string): KubeError {
  const got = JSON.stringify(line.slice(0, 200))
  return noAnswer('BadResponse', `${where}: got ${got}, want an event of a watch`)
}
