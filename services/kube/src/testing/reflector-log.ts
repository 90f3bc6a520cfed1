import { createLogger, systemClock } from '@tutti/chassis'
import type { Test } from 'tap'
import type { Client } from '../client.ts'
import { createClient } from '../create-client.ts'
import type { KubeObject } from '../object.ts'
import type { ClusterAccess } from '../transport/cluster-access.ts'
import { createTransport } from '../transport/create-transport.ts'
import { createReflector } from '../watch/create-reflector.ts'
import type { ReflectorEvent, ReflectorOptions } from '../watch/reflector.ts'

/** Opens a client for one test. Its transport closes in the test's teardown. */
export function openTestClient(t: Test, access: ClusterAccess): Client {
  const log = createLogger({ level: 'error', name: 'test', destination: { write: () => {} } })
  const transport = createTransport(access, { clock: systemClock, log, userAgent: 'test' })
  t.teardown(() => transport.close())
  return createClient(transport)
}

export type ReflectorLog<T extends KubeObject> = ReturnType<typeof openReflector<T>>

/** Opens a reflector that is closed in the test's teardown, and records its events and log lines. */
export function openReflector<T extends KubeObject>(
  t: Test,
  o: Pick<ReflectorOptions<T>, 'client' | 'resource'> & Partial<ReflectorOptions<T>>,
) {
  /** `added NAME` and so on; an initial one as `initial NAME`. */
  const events: string[] = []
  /** Its log lines, parsed. */
  const lines: Record<string, unknown>[] = []
  const waiters = new Set<() => void>()
  const wake = (): void => {
    for (const waiter of waiters) waiter()
  }
  const destination = {
    write: (line: string) => {
      lines.push(JSON.parse(line))
      wake()
    },
  }
  const reflector = createReflector<T>({
    clock: systemClock,
    log: createLogger({ level: 'debug', name: 'test', destination }),
    // The shortest waits, and all alike.
    random: () => 0,
    ...o,
    onEvent: (event) => {
      events.push(toText(event))
      try {
        o.onEvent?.(event)
      } finally {
        wake()
      }
    },
    onSynced: () => {
      o.onSynced?.()
      wake()
    },
  })
  t.teardown(() => reflector.close())
  /** Waits until `fits` holds; it is asked after each event and each log line. */
  const until = (fits: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!fits()) return
        waiters.delete(look)
        resolve()
      }
      waiters.add(look)
      look()
    })
  return {
    reflector,
    events: events as readonly string[],
    lines: lines as readonly Readonly<Record<string, unknown>>[],
    until,
  }
}

function toText<T extends KubeObject>(event: ReflectorEvent<T>): string {
  const isInitial = event.type === 'added' && event.isInitial
  return `${isInitial ? 'initial' : event.type} ${event.object.metadata.name}`
}
