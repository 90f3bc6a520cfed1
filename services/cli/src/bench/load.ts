import { flagRefusal } from '@tutti/chassis'

/** The load on a server: `closed` keeps a number of requests in flight, `open` sends a number per second. */
export type BenchLoad =
  | { readonly kind: 'closed'; readonly concurrency: number }
  | { readonly kind: 'open'; readonly rate: number }

const MOST_LOADS = 20
const MOST = { concurrency: 10_000, rate: 1_000_000 }

/**
 * Reads `--concurrency` and `--rate`, each a list with commas.
 *
 * @returns one load for each number; one request in flight without both flags.
 * @throws ServeError FLAG_INVALID if both flags are given, or for a bad list.
 */
export function readLoads(flags: {
  readonly concurrency: string | undefined
  readonly rate: string | undefined
}): readonly BenchLoad[] {
  const { concurrency, rate } = flags
  if (rate === undefined) {
    return readList('concurrency', concurrency ?? '1').map((one) => ({
      kind: 'closed',
      concurrency: one,
    }))
  }
  if (concurrency !== undefined) {
    throw flagRefusal('--rate', 'got --concurrency too, want one of both')
  }
  return readList('rate', rate).map((one) => ({ kind: 'open', rate: one }))
}

function readList(flag: 'concurrency' | 'rate', text: string): readonly number[] {
  const isRate = flag === 'rate'
  const form = isRate ? /^\d{1,7}(\.\d{1,6})?$/ : /^\d{1,5}$/
  const numbers = text.split(',').map((one) => (form.test(one) ? Number(one) : 0))
  if (numbers.every((one) => one > 0 && one <= MOST[flag]) && numbers.length <= MOST_LOADS) {
    return numbers
  }
  const want = `want at most ${MOST_LOADS} ${isRate ? 'numbers above 0' : 'whole numbers from 1'} to ${MOST[flag]}, such as 1,4,16`
  throw flagRefusal(`--${flag}`, `got '${text}', ${want}`)
}

export function describeLoad(load: BenchLoad): string {
  return load.kind === 'closed' ? `${load.concurrency} in flight` : `${load.rate}/s`
}
