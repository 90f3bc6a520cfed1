import { setImmediate as nextTurn } from 'node:timers/promises'
import { until } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import { openClient } from '../grpc-client.ts'
import type { Target } from '../serving.ts'
import { ask, describe, type Outcome } from './asking.ts'
import type { Question } from './questions.ts'

/** Starts so many clients, which ask one thing after the other until they are told to stop, spread over the targets; client i asks question i, then the next one after all others. */
export function startLoad(
  t: Test,
  o: {
    readonly targets: readonly Target[]
    readonly clients: number
    readonly question: (i: number) => Question
  },
) {
  const outcomes: Outcome[] = []
  let [asked, right] = [0, 0]
  let last = 'none'
  const state = { isStopped: false }
  const run = async (target: Target): Promise<void> => {
    const client = openClient(t, target)
    while (!state.isStopped) {
      const number = asked++
      const outcome = await ask(client, o.question(number))
      if (outcome.kind === 'right') right += 1
      outcomes[number] = outcome
      last = describe(outcome)
      // Without a server an error comes within the same turn of the event loop, and nothing else would get a turn.
      if (outcome.kind === 'error') await nextTurn()
    }
  }
  const clients = Array.from({ length: o.clients }, (_, i) => {
    const target = o.targets[i % o.targets.length]
    if (target === undefined) throw new Error('a load needs a target')
    return run(target)
  })
  // Before its clients are closed: a test that fails stops no load.
  t.teardown(() => {
    state.isStopped = true
  })
  return {
    /** Requests that were asked so far; the next one has this number. */
    get asked() {
      return asked
    },
    /** Right answers so far. */
    get right() {
      return right
    },
    /** Waits for so many more right answers. */
    more: (answers: number): Promise<unknown> => {
      const wanted = right + answers
      return until(
        () => `${wanted} right answers; the last is ${last}`,
        () => right >= wanted,
      )
    },
    /** Lets every client finish its request. @returns all outcomes, in the order in which they were asked for. */
    stop: async (): Promise<readonly Outcome[]> => {
      state.isStopped = true
      await Promise.all(clients)
      return outcomes
    },
  }
}
