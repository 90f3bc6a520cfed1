// needs: nats

import { ServeError } from '@tutti/errors'
import type { StepResponse } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import type { EndpointSettings } from '../endpoint-settings.ts'
import { answer, envelope, tensorBytes } from '../testing/endpoints.ts'
import {
  type Fate,
  FaultyNetwork,
  type SimulatedMember,
  SMALL,
  UNHARMED,
} from '../testing/faulty-network.ts'
import type { CallListener } from './call.ts'
import { HELD_SILENCES } from './taken-call.ts'

/** One call of a simulation. */
interface Script {
  readonly inputBytes: number
  /** Sizes of the responses, the last one final. */
  readonly outputs: readonly number[]
  readonly cancelAfterMs: number | undefined
  /** The reader takes nothing before. */
  readonly takesAfterMs: number
  /** The reader takes one response in that time. */
  readonly takesEveryMs: number
  /** The execution waits until the caller is ready before each response, else it gives all at once. */
  readonly isHeedful: boolean
}

/** The outcome of one call. */
interface Outcome {
  readonly responses: StepResponse[]
  readonly failures: string[]
  /** It failed, and nothing can have been executed. Not checked for a call that was cancelled. */
  isUnexecuted: boolean
  ends: number
  executions: number
  /** Responses that the reader has taken. */
  taken: number
  /** The most responses that the execution has given beyond those. */
  ahead: number
}

/** In this time the slowest script is long over. */
const LONGEST_MS = 120_000

const SCRIPT = fc.record<Script>({
  inputBytes: fc.integer({ min: 0, max: 200 }),
  outputs: fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 8 }),
  cancelAfterMs: fc.option(fc.integer({ min: 0, max: 400 }), { nil: undefined, freq: 4 }),
  takesAfterMs: fc.constantFrom(0, 0, 0, 40, 200),
  takesEveryMs: fc.constantFrom(0, 0, 20, 60),
  isHeedful: fc.boolean(),
})

/** None; what the members keep; more than they keep, so that some of it is thrown away. */
const UNASKED = fc.constantFrom(0, SMALL.creditBytes, 200)

/** A window that a few responses use up. */
const SETTINGS: EndpointSettings = { ...SMALL, responseBytes: 300 }
const SCRIPTS = fc.array(SCRIPT, { minLength: 1, maxLength: 6 })
const DISORDER = fc.record<Fate>({
  copies: fc.constantFrom(1, 1, 1, 1, 2),
  delayMs: fc.constantFrom(0, 0, 0, 0, 20, 40),
})
const LOSS = fc.record<Fate>({
  copies: fc.constantFrom(1, 1, 1, 1, 1, 1, 0, 2),
  delayMs: fc.constantFrom(0, 0, 0, 0, 20, 40),
})

/** A router with one replica that answers by the scripts; `attempt` of the envelope says which one, from 1. */
class Simulation {
  readonly network: FaultyNetwork
  readonly router: SimulatedMember
  readonly replica: SimulatedMember
  readonly outcomes: Outcome[]
  readonly #scripts: readonly Script[]
  readonly #acts: ((elapsedMs: number) => void)[] = []
  #fates = 0

  constructor(scripts: readonly Script[], fates: readonly Fate[], unasked: number) {
    this.#scripts = scripts
    this.outcomes = scripts.map(() => ({
      responses: [],
      failures: [],
      isUnexecuted: false,
      ends: 0,
      executions: 0,
      taken: 0,
      ahead: 0,
    }))
    // A fault that comes back for ever in step with our repetitions would never let a call end.
    this.network = new FaultyNetwork(() => fates[this.#fates++] ?? UNHARMED, SETTINGS, unasked)
    this.router = this.network.add('router', () => {})
    this.replica = this.network.add('step', ({ key, envelope: { attempt }, inputs, signal }) => {
      const script = scripts[attempt - 1]
      const outcome = this.outcomes[attempt - 1]
      if (script === undefined || outcome === undefined) throw new Error('an unknown call')
      outcome.executions += 1
      if (!same(tensorBytes(script.inputBytes, attempt), inputs[0])) throw new Error('wrong bytes')
      let index = 0
      const respond = (): void => {
        while (index < script.outputs.length && !signal.aborted) {
          if (script.isHeedful && this.replica.incomingCalls.ready(key) !== undefined) return
          const final = index + 1 === script.outputs.length
          const bytes = tensorBytes(script.outputs[index] ?? 0, attempt + index)
          this.replica.incomingCalls.respond(this.network.now, key, answer(bytes, { index, final }))
          index += 1
          outcome.ahead = Math.max(outcome.ahead, index - outcome.taken)
        }
        if (!hasEnded) this.replica.incomingCalls.ended(this.network.now, key)
        hasEnded = true
      }
      let hasEnded = false
      respond()
      this.#acts.push(respond)
    })
    this.network.onEvent = () => this.#check()
  }

  /** Makes all calls and lets time pass until nothing more can come. */
  async run(): Promise<void> {
    this.#scripts.forEach((script, i) => this.#call(script, i + 1))
    while (this.outcomes.some(({ ends }) => ends === 0) && this.network.now < LONGEST_MS) {
      await this.#step()
    }
    // The longest wait of all is that for a caller that takes nothing; after it nothing has a reason to be kept.
    const end = this.network.now + 2 * HELD_SILENCES * SMALL.silenceMs
    while (this.network.now < end) await this.#step()
  }

  async #step(): Promise<void> {
    for (const act of this.#acts) act(this.network.now)
    // Lets the caller hear what was taken.
    await Promise.resolve()
    this.network.run(20)
  }

  #call(script: Script, number: number): void {
    const { network, router } = this
    const outcome = this.outcomes[number - 1]
    if (outcome === undefined) throw new Error('an unknown call')
    const waiting: (() => void)[] = []
    let hasEnded = false
    const offered = envelope(script.inputBytes, { attempt: number })
    const input = tensorBytes(script.inputBytes, number)
    const listener: CallListener = {
      sink: {
        send: (response) => {
          outcome.responses.push(response)
          if (response.final) outcome.ends += 1
        },
        fail: ({ reason }, executed) => {
          outcome.ends += 1
          outcome.failures.push(reason)
          outcome.isUnexecuted = executed === 'no' && reason !== 'CANCELLED'
        },
        ready: () => {
          const { promise, resolve } = Promise.withResolvers<void>()
          waiting.push(() => {
            outcome.taken += 1
            resolve()
          })
          return promise
        },
      },
      ended: () => {
        if (hasEnded) throw new Error(`call ${number} ended twice`)
        hasEnded = true
      },
    }
    const call = router.outgoingCalls.open(network.now, {
      to: 'step',
      envelope: offered,
      tensors: [input],
      listener,
    })
    this.#acts.push((elapsedMs) => {
      if (script.cancelAfterMs !== undefined && elapsedMs >= script.cancelAfterMs) {
        router.outgoingCalls.cancel(network.now, call, new ServeError('CANCELLED', 'enough'))
      }
      if (elapsedMs < script.takesAfterMs) return
      if (script.takesEveryMs === 0) for (const take of waiting.splice(0)) take()
      else if (elapsedMs % script.takesEveryMs === 0) waiting.shift()?.()
    })
  }

  /** Checks what must hold at all times. */
  #check(): void {
    for (const {
      incomingTransfers,
      outgoingCalls,
      incomingCalls,
    } of this.network.members.values()) {
      // The window, and as much again unasked.
      if (incomingTransfers.outstanding > SMALL.creditTotalBytes)
        throw new Error('too much is under way')
      if (outgoingCalls.reservedBytes > SMALL.tensorBytesPerMember)
        throw new Error('over the budget')
      if (incomingCalls.slots.reservedBytes > SMALL.tensorBytesPerMember)
        throw new Error('over the budget')
    }
  }

  /** Counts what is left of anything once all calls have ended. */
  leftovers(): Record<string, number> {
    const left: Record<string, number> = {}
    for (const {
      id,
      incomingTransfers,
      outgoingTransfers,
      outgoingCalls,
      incomingCalls,
    } of this.network.members.values()) {
      left[`${id} incoming`] =
        incomingTransfers.size + incomingTransfers.earlySize + incomingTransfers.outstanding
      left[`${id} outgoing`] = outgoingTransfers.size
      left[`${id} calls`] = outgoingCalls.size + incomingCalls.size + incomingCalls.running
      left[`${id} bytes`] =
        outgoingCalls.reservedBytes + incomingCalls.slots.reservedBytes + incomingCalls.heldBytes
    }
    return left
  }
}

function same(want: Uint8Array, got: Uint8Array | undefined): boolean {
  return Buffer.from(want).equals(got ?? new Uint8Array())
}

/** Whatever happened: one end, the right bytes in the right order, executed at most once, nothing kept. */
function holds(simulation: Simulation, scripts: readonly Script[]): void {
  simulation.outcomes.forEach((outcome, i) => {
    const { ends, executions, responses, ahead } = outcome
    if (scripts[i]?.isHeedful === true && ahead > SETTINGS.responseCredits) {
      throw new Error(`call ${i} was ${ahead} responses ahead of its reader`)
    }
    if (ends !== 1) throw new Error(`call ${i} ended ${ends} times`)
    if (executions > 1) throw new Error(`call ${i} was executed ${executions} times`)
    responses.forEach((response, index) => {
      const want = tensorBytes(scripts[i]?.outputs[index] ?? -1, i + 1 + index)
      if (response.index !== index || !same(want, response.outputs[0]?.data)) {
        throw new Error(`call ${i}: wrong response ${index}`)
      }
    })
  })
  for (const [what, count] of Object.entries(simulation.leftovers())) {
    if (count !== 0) throw new Error(`left over: ${what} ${count}`)
  }
}

await t.test('whatever is repeated or reordered, every call has all its bytes', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      SCRIPTS,
      fc.array(DISORDER, { maxLength: 400, size: 'max' }),
      UNASKED,
      async (scripts, fates, unasked) => {
        const simulation = new Simulation(scripts, fates, unasked)
        await simulation.run()
        holds(simulation, scripts)
        scripts.forEach((script, i) => {
          const outcome = simulation.outcomes[i]
          if (script.cancelAfterMs !== undefined) return
          if (outcome?.failures.length !== 0)
            throw new Error(`call ${i}: ${String(outcome?.failures)}`)
          if (outcome.responses.length !== script.outputs.length) throw new Error('responses lack')
        })
      },
    ),
    { numRuns: 100 },
  )
  t.pass()
})

await t.test('whatever is lost, every call ends once and nothing is kept', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      SCRIPTS,
      fc.array(LOSS, { maxLength: 400, size: 'max' }),
      UNASKED,
      async (scripts, fates, unasked) => {
        const simulation = new Simulation(scripts, fates, unasked)
        await simulation.run()
        holds(simulation, scripts)
        for (const { failures, isUnexecuted, executions } of simulation.outcomes) {
          // A call that cannot have run says so: another attempt is safe.
          if (isUnexecuted && executions > 0) throw new Error(`it did run: ${String(failures)}`)
          if (failures.includes('STEP_UNAVAILABLE') && !isUnexecuted) throw new Error('it may run')
        }
      },
    ),
    { numRuns: 100 },
  )
  t.pass()
})
