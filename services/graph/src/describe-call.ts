import type { CallRules, OnError } from './call-rules.ts'

/** Describes the rules for the call of a step in short phrases for people, in the order in which they take effect. */
export function describeCall({
  timeoutMs,
  retry,
  hedge,
  mayRunTwice,
  onError,
}: CallRules): readonly string[] {
  return [
    ...(hedge === undefined ? [] : [`hedged after ${hedge.afterMs} ms`]),
    ...(retry === undefined
      ? []
      : [`at most ${retry.maxRetries} retries on ${retry.retryOn.join(', ')}`]),
    ...(mayRunTwice === true ? ['may run twice'] : []),
    ...(timeoutMs === undefined ? [] : [`timeout ${timeoutMs} ms`]),
    ...(onError === undefined ? [] : [describeError(onError)]),
  ]
}

function describeError(onError: OnError): string {
  if (onError.kind === 'default') return 'answers with defaults if it fails'
  const { model, version, timeoutMs } = onError
  const which = version === -1 ? model : `${model} version ${version}`
  return `falls back to ${which}${timeoutMs === undefined ? '' : ` (timeout ${timeoutMs} ms)`}`
}
