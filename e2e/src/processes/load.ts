import type { Test } from 'tap'
import type { Target } from '../serving.ts'
import { ask, describe, type Outcome, openClient } from './asking.ts'
import type { Question } from './questions.ts'
import { until } from './until.ts'

/** Clients that ask one thing after the other until they are told to stop. */
export interface Load {
  /** In the order in which they came. */
  readonly outcomes: readonly Outcome[]
  /** Requests that were asked and have not ended. */
  readonly open: number
  /** Right answers so far. */
  readonly right: number
  /** Waits for so many more right answers. */
  more(answers: number): Promise<unknown>
  /** Lets every client finish its request. @returns all outcomes. */
  stop(): Promise<readonly Outcome[]>
}

/** Starts so many clients, spread over the targets; client i asks question i, then the next one after all others. */
export function startLoad(
  t: Test,
  o: {
    readonly targets: readonly Target[]
    readonly clients: number
    readonly question: (i: number) => Question
  },
): Load {
  const outcomes: Outcome[] = []
  let [asked, open, right] = [0, 0, 0]
  const state = { isStopped: false }
  const run = async (target: Target): Promise<void> => {
    const client = openClient(t, target)
    while (!state.isStopped) {
      open += 1
      const outcome = await ask(client, o.question(asked++))
      open -= 1
      if (outcome.kind === 'right') right += 1
      outcomes.push(outcome)
    }
  }
  const clients = Array.from({ length: o.clients }, (_, i) => {
    const target = o.targets[i % o.targets.length]
    if (target === undefined) throw new Error('a load needs a target')
    return run(target)
  })
  return {
    outcomes,
    get open() {
      return open
    },
    get right() {
      return right
    },
    more: (answers) => {
      const wanted = right + answers
      return until(
        () => `${wanted} right answers; the last is ${last(outcomes)}`,
        () => right >= wanted,
      )
    },
    stop: async () => {
      state.isStopped = true
      await Promise.all(clients)
      return outcomes
    },
  }
}

function last(outcomes: readonly Outcome[]): string {
  const outcome = outcomes.at(-1)
  return outcome === undefined ? 'none' : describe(outcome)
}
