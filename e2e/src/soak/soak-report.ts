import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from '../serving.ts'
import { judge, type Measured, type Trend, trendOf, type Verdict } from './flatness.ts'

/** Numbers by what they are of: `router 0: heap bytes`. */
export type Numbers = Readonly<Record<string, number>>

/** Results of one round, and what was there after it. */
export interface Round {
  readonly round: number
  /** Seconds since the piece began. */
  readonly atS: number
  /** How often what was asked, and how it ended; how often what was done to whom. */
  readonly done: Numbers
  readonly held: Numbers
  /** Breaches of promises; empty in a good round. */
  readonly problems: readonly string[]
}

/** One run, from the start of its processes to their end. */
interface Piece {
  readonly startedAt: string
  /** Commit of the checkout; with `+` if it has changes. */
  readonly commit: string
  readonly seed: number
  readonly rounds: Round[]
}

/** Trend of one quantity, over all pieces of the newest commit. */
export interface Judged extends Trend {
  readonly bound: number
  readonly verdict: Verdict
  readonly first: number
  readonly last: number
}

interface Report {
  readonly minutes: number
  readonly rounds: number
  readonly done: Numbers
  readonly problems: number
  /** Undefined trends are left out: there are too few rounds. */
  readonly trends: Readonly<Record<string, Judged>>
  readonly pieces: readonly Piece[]
}

/** Until caches and pools have their sizes. */
const WARM_UP_ROUNDS = 5
/** Until V8 has compiled what runs in every round as well as it can: what that takes falls with each round, to 10 KiB by then. */
const COMPILE_ROUNDS = 30

interface Limit {
  /** The end of the quantity's name. */
  readonly of: RegExp
  /** Most that may come with each round for ever. A round is some thousand requests. */
  readonly bound: number
  readonly warmUpRounds: number
}

const LIMITS: readonly Limit[] = [
  { of: /: heap bytes$/, bound: 16 * 1024, warmUpRounds: WARM_UP_ROUNDS },
  { of: /: code bytes$/, bound: 16 * 1024, warmUpRounds: COMPILE_ROUNDS },
  { of: /: resident bytes$/, bound: 128 * 1024, warmUpRounds: WARM_UP_ROUNDS },
  {
    of: /: (?:descriptors|threads|processes|connections|subscriptions|objects)$/,
    bound: 0.01,
    warmUpRounds: WARM_UP_ROUNDS,
  },
]

export type SoakReport = ReturnType<typeof openReport>

/**
 * Opens the report that TUTTI_SOAK_REPORT names, by default `out/soak/NAME.json`, and adds a piece to it. Pieces of another commit stay,
 * but do not count for the trends.
 */
export function openReport(name: string, seed: number) {
  const path = process.env['TUTTI_SOAK_REPORT'] ?? join(ROOT, 'out', 'soak', `${name}.json`)
  const earlier = existsSync(path) ? readReport(path).pieces : []
  const startedAt = new Date().toISOString()
  const piece: Piece = { startedAt, commit: commitOf(), seed, rounds: [] }
  const pieces = [...earlier, piece]
  mkdirSync(dirname(path), { recursive: true })
  return {
    path,
    /** Adds a round and writes the report anew, so that it is whole at any moment. @returns the trends so far. */
    add: (round: Round): Report['trends'] => {
      piece.rounds.push(round)
      const report = summarise(pieces, piece.commit)
      writeFileSync(`${path}~`, `${JSON.stringify(report, null, 1)}\n`)
      renameSync(`${path}~`, path)
      return report.trends
    },
  }
}

function readReport(path: string): Report {
  // Only this module writes it; a report that was cut is never in its place.
  return JSON.parse(readFileSync(path, 'utf8'))
}

function commitOf(): string {
  try {
    return git('rev-parse', '--short=12', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+')
  } catch {
    return 'unknown'
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
}

function summarise(pieces: readonly Piece[], commit: string): Report {
  const own = pieces.filter((piece) => piece.commit === commit)
  const rounds = own.flatMap((piece) => piece.rounds)
  const names = new Set(rounds.flatMap(({ held }) => Object.keys(held)))
  const trends = [...names].flatMap((name) => {
    const judged = judgeOne(own, name)
    return judged === undefined ? [] : [[name, judged] as const]
  })
  return {
    minutes: own.reduce((total, piece) => total + (piece.rounds.at(-1)?.atS ?? 0) / 60, 0),
    rounds: rounds.length,
    done: addUp(rounds.map(({ done }) => done)),
    problems: rounds.reduce((total, { problems }) => total + problems.length, 0),
    trends: Object.fromEntries(trends.toSorted(([a], [b]) => (a < b ? -1 : 1))),
    pieces,
  }
}

function judgeOne(pieces: readonly Piece[], name: string): Judged | undefined {
  const limit = LIMITS.find(({ of }) => of.test(name))
  if (limit === undefined) return undefined
  const { bound, warmUpRounds } = limit
  const measured = pieces.map(({ rounds }): Measured => {
    const warm = rounds.filter(({ round, held }) => round > warmUpRounds && name in held)
    return warm.map(({ round, held }) => [round, held[name] ?? 0])
  })
  const trend = trendOf(measured)
  const [first, last] = [measured.at(-1)?.[0]?.[1] ?? 0, measured.at(-1)?.at(-1)?.[1] ?? 0]
  return trend && { ...trend, bound, verdict: judge(trend, bound), first, last }
}

/** All of them, added by name. */
export function addUp(all: readonly Numbers[]): Numbers {
  const total: Record<string, number> = {}
  for (const numbers of all) {
    for (const [name, value] of Object.entries(numbers)) total[name] = (total[name] ?? 0) + value
  }
  return total
}
