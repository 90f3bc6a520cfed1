import {
  chainQuestion,
  identityQuestion,
  nestedQuestion,
  type Question,
  slowQuestion,
  versionedQuestion,
} from './questions.ts'

/** Numbers from 0 to 1, of a seed. */
export type Random = () => number

/** One request as its client makes it. */
export interface PlannedRequest {
  readonly question: Question
  /** The client goes away after that time, if it has no answer by then. */
  readonly cancelAfterMs?: number
  /** Its deadline. */
  readonly timeoutMs?: number
}

/** A whole number from `least` to `most`. */
export function between(random: Random, least: number, most: number): number {
  return least + Math.floor(random() * (most - least + 1))
}

/** One of them. */
export function oneOf<T>(random: Random, all: readonly T[]): T {
  const found = all[Math.floor(random() * all.length)]
  if (found === undefined) throw new Error('one of none')
  return found
}

const KIB = 1024

/** Questions, and how often each is asked, of a hundred: small ones mostly; the large ones take one piece of a transfer, or many. */
const MIX: readonly (readonly [number, (random: Random, seed: number) => Question])[] = [
  [50, (_, seed) => chainQuestion(seed)],
  [14, (_, seed) => nestedQuestion(seed)],
  [14, (random, seed) => versionedQuestion(between(random, 4, 4 * KIB), seed)],
  [5, (random) => slowQuestion(between(random, 1, 100))],
  [3, (random) => slowQuestion(between(random, 1, 50), 'ens_slow')],
  [7, (random, seed) => identityQuestion(between(random, 1, 64 * KIB), seed)],
  [3, (random, seed) => versionedQuestion(between(random, 64 * KIB, 256 * KIB), seed)],
  [3, (random, seed) => identityQuestion(between(random, 64 * KIB, 1024 * KIB), seed)],
  [1, (random, seed) => identityQuestion(between(random, 1024 * KIB, 5 * 1024 * KIB), seed)],
]

/** Requests of a hundred that are cancelled, and that have a deadline. */
const CANCELLED = 5
const TIMED = 5

/** @param number - of the request: no two of them ask for the same bytes, so that one's answer is wrong for any other. */
export function planRequest(random: Random, number: number): PlannedRequest {
  const question = planQuestion(random, number)
  const fate = random() * 100
  if (fate < CANCELLED) return { question, cancelAfterMs: between(random, 0, 60) }
  if (fate < CANCELLED + TIMED) return { question, timeoutMs: between(random, 1, 120) }
  return { question }
}

function planQuestion(random: Random, number: number): Question {
  let rest = random() * 100
  for (const [share, make] of MIX) {
    if (rest < share) return make(random, number)
    rest -= share
  }
  return chainQuestion(number)
}
