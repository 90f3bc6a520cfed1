import { type RecordedSteps, type RequestTimes, requestTimes } from '@tutti/console'

/** The times of one request, from its client and from the server. */
export interface RequestTrace extends RecordedSteps {
  readonly model: string
  readonly version: string
  readonly clientMs: number
}

/** A part of the time that the client waited. */
export interface TimePart {
  readonly name: string
  readonly ms: number
  /** Share of `clientMs`, from 0 to 1. */
  readonly share: number
}

/** Splits the time of a request into its parts, the longest first. Unknown parts are left out. */
export function timeParts(trace: RequestTrace): readonly TimePart[] {
  const { clientMs } = trace
  const times = requestTimes(trace)
  if (times === undefined) return []
  const steps = times.path.length > 0 ? ' of the critical path' : ''
  const parts: readonly (readonly [string, number])[] = [
    [`queue${steps}`, times.queueMs],
    [`compute${steps}`, times.computeMs],
    [`transfer${steps}`, times.transferMs],
    ['server, between the steps', times.betweenMs],
    ['client, network and codecs', Math.max(0, clientMs - times.allMs)],
  ]
  return parts
    .filter(([, ms]) => Number.isFinite(ms) && ms > 0)
    .map(([name, ms]) => ({ name, ms, share: ms / clientMs }))
    .toSorted((a, b) => b.ms - a.ms)
}

/** Lists the steps of the request's critical path, in order; none for a model without steps, or if the path is unknown. */
export function pathOf(trace: RequestTrace): RequestTimes['path'] {
  return requestTimes(trace)?.path ?? []
}

/** Says in a sentence how many steps the trace lacks; undefined if it is complete. */
export function cutOf({ leftOut }: RequestTrace): string | undefined {
  if (leftOut === 0) return undefined
  const steps = leftOut === 1 ? 'step' : 'steps'
  return `The server left out ${leftOut} ${steps}, so the critical path is unknown.`
}
