import type { Call, Case } from './case.ts'

const MOST_TRIES = 80

/**
 * The smallest case that still shows what `shows` looks for: parts of its calls are left out as long as it does.
 *
 * @param shows - runs a case and says whether it shows the same difference.
 */
export async function shrink(
  test: Case,
  shows: (smaller: Case) => Promise<boolean>,
): Promise<Case> {
  // Models are loaded anew for each try, which takes seconds.
  if (test.files !== undefined) return test
  let best = test
  let tries = 0
  for (;;) {
    const found = await firstThat(
      smallerOnes(best),
      async (smaller) => tries++ < MOST_TRIES && (await shows(smaller)),
    )
    if (found === undefined) return best
    best = found
  }
}

async function firstThat<T>(
  items: Iterable<T>,
  fits: (item: T) => Promise<boolean>,
): Promise<T | undefined> {
  for (const item of items) {
    if (await fits(item)) return item
  }
  return undefined
}

/** The case without one of its calls, or with one of them smaller. */
function* smallerOnes(test: Case): Generator<Case> {
  const { calls } = test
  for (const at of calls.keys()) {
    if (calls.length > 1) yield { ...test, calls: calls.filter((_call, i) => i !== at) }
  }
  for (const [at, call] of calls.entries()) {
    for (const smaller of smallerCalls(call)) yield { ...test, calls: calls.with(at, smaller) }
  }
}

function* smallerCalls(call: Call): Generator<Call> {
  if ('rpc' in call) {
    for (const requests of lessOf(call.requests)) {
      if (Array.isArray(requests)) yield { ...call, requests }
    }
  }
  if (!('path' in call)) return
  for (const headers of lessOf(call.headers ?? {})) yield { ...call, headers: Object(headers) }
  const json = parsed(call.body)
  for (const body of lessOf(json)) yield { ...call, body: JSON.stringify(body) }
}

function parsed(body = ''): unknown {
  try {
    const json: unknown = JSON.parse(body)
    // One with numbers that JavaScript rounds would change.
    return JSON.stringify(json) === body ? json : undefined
  } catch {
    return undefined
  }
}

/** The value without one of its parts, from large ones to small ones. */
function* lessOf(value: unknown): Generator {
  if (typeof value !== 'object' || value === null) return
  const entries = Object.entries(value)
  const build = (kept: readonly (readonly [string, unknown])[]): unknown =>
    Array.isArray(value) ? kept.map(([, item]) => item) : Object.fromEntries(kept)
  for (const at of entries.keys()) yield build(entries.filter((_entry, i) => i !== at))
  for (const [at, [key, item]] of entries.entries()) {
    for (const less of lessOf(item)) yield build(entries.with(at, [key, less]))
  }
}
