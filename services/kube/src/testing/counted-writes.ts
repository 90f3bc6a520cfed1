import type { ProxiedRequest } from './fault-rules.ts'

/** A write that the server carried out or refused. */
export interface CountedWrite {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: string
  readonly status: number
}

export interface WriteHooks {
  /** Called, and waited for, before the write is passed on. */
  readonly before?: (request: ProxiedRequest) => unknown
  /** Called, and waited for, after the server's answer and before the answer is passed on. */
  readonly after?: (request: ProxiedRequest) => unknown
}

export type WriteFilter = (request: ProxiedRequest) => boolean

export type CountedWrites = ReturnType<typeof createCountedWrites>

/**
 * Counts writes, and calls the hooks of the writes that a test waits for.
 *
 * @param counts - tells which writes count; default: all but those of leases and events, which come at any time.
 */
export function createCountedWrites(counts: WriteFilter = isCounted) {
  const writes: CountedWrite[] = []
  const hooks = new Set<Hook>()
  return {
    writes,
    onWrite: (k: number, around: WriteHooks, when: WriteFilter = () => true) =>
      void hooks.add({ left: k - 1, around, when }),
    clear: () => hooks.clear(),
    /**
     * Passes a request on, and calls the hooks that are due around it.
     *
     * @param pass - sends it, and calls back with the status.
     */
    around: async (
      request: ProxiedRequest,
      pass: (onAnswer: (status: number) => Promise<void>) => Promise<void>,
    ): Promise<void> => {
      if (!request.isWrite || !counts(request)) {
        await pass(() => Promise.resolve())
        return
      }
      const due = takeDue(hooks, request)
      for (const { before } of due) await before?.(request)
      await pass(async (status) => {
        const { method, path, query, body } = request
        writes.push({ method, path, query, body, status })
        for (const { after } of due) await after?.(request)
      })
    },
  }
}

interface Hook {
  /** Writes before it. */
  left: number
  readonly around: WriteHooks
  readonly when: WriteFilter
}

function takeDue(hooks: Set<Hook>, request: ProxiedRequest): readonly WriteHooks[] {
  const counting = [...hooks].filter(({ when }) => when(request))
  const due = counting.filter(({ left }) => left === 0)
  for (const hook of due) hooks.delete(hook)
  for (const hook of counting) hook.left -= 1
  return due.map(({ around }) => around)
}

function isCounted(request: ProxiedRequest): boolean {
  return !/\/(?:leases|events)(?:\/|$)/.test(request.path)
}
