import type { ProxiedRequest } from './fault-rules.ts'

/** A write that was carried out, or refused by the server. */
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
  /** Called, and waited for, when it is carried out and before it is answered. */
  readonly after?: (request: ProxiedRequest) => unknown
}

export type WriteFilter = (request: ProxiedRequest) => boolean

/** Counts writes, and calls those back who wait for one of them. */
export interface CountedWrites {
  /** Those that the server has answered, from the first on. */
  readonly writes: readonly CountedWrite[]
  /** Calls back around the k-th write from now on, 1 for the next one. @param when - which of them count; default: all. */
  onWrite(k: number, hooks: WriteHooks, when?: WriteFilter): void
  /** Takes all hooks back. */
  clear(): void
  /** Passes a write on, if it is one that counts with all that is to happen around it. @param pass - calls back with the status. */
  around(
    request: ProxiedRequest,
    pass: (onAnswer: (status: number) => Promise<void>) => Promise<void>,
  ): Promise<void>
}

/** @param counts - which of the writes do; default: all but those of leases and events, which come of themselves. */
export function createCountedWrites(counts: WriteFilter = isCounted): CountedWrites {
  const writes: CountedWrite[] = []
  const hooks = new Set<Hook>()
  return {
    writes,
    onWrite: (k, around, when = () => true) => void hooks.add({ left: k - 1, around, when }),
    clear: () => hooks.clear(),
    around: async (request, pass) => {
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
