import assert from 'node:assert/strict'
import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { EnsembleDriver, type Invoke, type Symbols } from '../testing/ensemble-driver.ts'
import {
  type Interpretation,
  interpretEnsemble,
  invocationText,
} from '../testing/interpret-ensemble.ts'
import { type Dice, dice, type RandomEnsemble, randomEnsemble } from '../testing/random-ensemble.ts'

interface Scenario {
  readonly ensemble: RandomEnsemble
  readonly roll: Dice
  readonly inputs: Symbols
  readonly requestedOutputs: readonly string[]
}

/** The responses that a step in flight has yet to send. */
interface Script {
  readonly responses: readonly Symbols[]
  sent: number
  /** True if the end comes as a response of its own. */
  readonly endsApart: boolean
}

const SEED = fc.integer({ min: 0, max: 2 ** 31 })

function scenario(seed: number, decoupledSteps: number, hasConditions = false): Scenario {
  const o = { hasDependencies: seed % 2 === 1, hasConditions: hasConditions && seed % 3 > 0 }
  const ensemble = randomEnsemble(seed, decoupledSteps, o)
  const roll = dice(seed + 1)
  const given = ensemble.plan.inputs.filter((input) => !input.optional || roll(2) === 0)
  const outputs = ensemble.plan.outputs.filter(() => roll(2) === 0)
  return {
    ensemble,
    roll,
    inputs: Object.fromEntries(given.map(({ name }) => [name, name])),
    requestedOutputs: outputs.map(({ name }) => name),
  }
}

function drive(s: Scenario, hazards: (driver: EnsembleDriver) => boolean): EnsembleDriver {
  const driver = new EnsembleDriver(s.ensemble.plan, { requestedOutputs: s.requestedOutputs })
  const scripts = new Map<Invoke, Script>()
  driver.start(s.inputs)
  while (driver.inFlight.size > 0) {
    if (hazards(driver)) continue
    const invoke = [...driver.inFlight.values()][s.roll(Math.max(1, driver.inFlight.size))]
    if (invoke !== undefined) step(s, driver, invoke, scripts)
  }
  return driver
}

function step(
  s: Scenario,
  driver: EnsembleDriver,
  invoke: Invoke,
  scripts: Map<Invoke, Script>,
): void {
  // Once the run has ended its references are gone; what the step answers then does not matter.
  const isOver = driver.terminals > 0
  if (!isOver && s.ensemble.skips(invoke.step, driver.read(invoke))) return void driver.skip(invoke)
  const responses = isOver ? [{ o0: 'late' }] : s.ensemble.answer(invoke.step, driver.read(invoke))
  const script = scripts.get(invoke) ?? {
    responses,
    sent: 0,
    // A last response without outputs is no response but an end, so a response that withholds all is never the last.
    endsApart:
      s.roll(3) === 0 ||
      (driver.plan.steps[invoke.step]?.decoupled === true &&
        Object.keys(responses.at(-1) ?? {}).length === 0),
  }
  scripts.set(invoke, script)
  const index = script.sent
  script.sent += 1
  const response = script.responses[index]
  const isLast = index >= script.responses.length - (script.endsApart ? 0 : 1)
  driver.respond(invoke, response ?? {}, { index, final: isLast })
}

function invocations(driver: EnsembleDriver): Map<Invoke, string> {
  const read = new Map<Invoke, string>()
  for (const invoke of driver.inFlight.values()) {
    const name = driver.plan.steps[invoke.step]?.name ?? ''
    read.set(invoke, invocationText(name, driver.read(invoke)))
  }
  return read
}

function expectation(s: Scenario): Interpretation {
  return interpretEnsemble(s.ensemble, s.inputs, s.requestedOutputs)
}

function sorted(values: Iterable<unknown>): readonly string[] {
  return [...values].map((value) => JSON.stringify(value)).toSorted()
}

await t.test('a run answers as the graph read step by step, whatever ends first', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(SEED, fc.integer({ min: 0, max: 2 }), (seed, decoupledSteps) => {
        const s = scenario(seed, decoupledSteps, true)
        const wanted = expectation(s)
        const read = new Map<Invoke, string>()
        const driver = drive(s, (running) => {
          for (const [invoke, text] of invocations(running)) read.set(invoke, text)
          return false
        })
        assert.equal(driver.terminals, 1)
        assert.equal(driver.failure, undefined)
        assert.equal(driver.held, 0)
        assert.deepEqual(
          sorted(read.values()),
          sorted(wanted.invocations),
          'what is needed runs, and only that',
        )
        const got = driver.emitted.map(({ outputs }) => outputs)
        // The stream ends with its last response or with an empty one.
        if (got.length > wanted.responses.length) assert.deepEqual(got.pop(), {})
        if (decoupledSteps < 2) assert.deepEqual(got, wanted.responses)
        else assert.deepEqual(sorted(got), sorted(wanted.responses))
        assert.deepEqual(
          driver.emitted.map(({ action }) => action.final),
          driver.emitted.map((_, i) => i === driver.emitted.length - 1),
        )
      }),
      { numRuns: 400 },
    ),
  )
})

await t.test('every step that has what it reads is in flight or done', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(SEED, (seed) => {
        const s = scenario(seed, 0)
        const { plan } = s.ensemble
        const wanted = new Set(
          expectation(s).invocations.map((text) => text.slice(0, text.indexOf('('))),
        )
        const isWanted = (step: number): boolean => wanted.has(plan.steps[step]?.name ?? '')
        drive(s, (driver) => {
          const open = new Set(driver.running)
          const done = driver.invoked
            .map((invoke) => invoke.step)
            .filter((index) => !open.has(plan.steps[index]?.name ?? ''))
          const there = (tensor: number): boolean => {
            const step = plan.tensors[tensor]?.step
            return step === undefined || driver.responded.has(step)
          }
          const ready = plan.steps.filter(
            (candidate) =>
              wanted.has(candidate.name) &&
              !done.includes(candidate.index) &&
              candidate.reads.every(there) &&
              candidate.dependsOn.every((other) => done.includes(other) || !isWanted(other)),
          )
          assert.deepEqual(
            [...open].toSorted(),
            ready.map((candidate) => candidate.name).toSorted(),
            'neither earlier nor later',
          )
          return false
        })
      }),
      { numRuns: 300 },
    ),
  )
})

/** A step that has begun, began after what it depends on, as far as counts show. */
function checkOrder({ plan, invoked, inFlight }: EnsembleDriver): void {
  const runs = plan.steps.map(({ index }) => {
    const begun = invoked.filter(({ step }) => step === index)
    const open = begun.filter(({ execution }) => inFlight.has(execution))
    return { begun: begun.length, ended: begun.length - open.length }
  })
  for (const { index, label, dependsOn } of plan.steps) {
    for (const other of dependsOn) {
      const { begun = 0 } = runs[index] ?? {}
      const first = runs[other]
      if (begun === 0 || first === undefined || first.begun === 0) continue
      // One for each of its own iterations where both are in the same; else the one around it.
      const want = plan.steps[other]?.label === label ? begun : 1
      assert.ok(first.ended >= want, `${first.ended} ends, ${begun} begun`)
    }
  }
}

await t.test(
  'under a stream too, a step that depends on another begins after its end',
  async (t) => {
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(SEED, fc.integer({ min: 1, max: 2 }), (seed, decoupledSteps) => {
          const s = scenario(seed * 2 + 1, decoupledSteps)
          drive(s, (driver) => {
            checkOrder(driver)
            return false
          })
        }),
        { numRuns: 300 },
      ),
    )
  },
)

await t.test('failures and cancels end a run once and leak nothing', async (t) => {
  const broken = new ServeError('ENGINE_FAILED', 'it broke')
  const gone = new ServeError('CANCELLED', 'the client went away')
  const endings = new Set<string>()
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(SEED, fc.integer({ min: 0, max: 2 }), (seed, decoupledSteps) => {
        const s = scenario(seed, decoupledSteps, true)
        const risk = 6 + s.roll(30)
        const driver = drive(s, (running) => {
          const invoke = [...running.inFlight.values()][0]
          const kind = s.roll(risk)
          if (kind > 1 || (invoke === undefined && kind !== 0)) return false
          if (kind === 0) running.send({ type: 'Cancelled', error: gone })
          else if (invoke !== undefined) {
            if (s.roll(3) === 0) running.fail(invoke, broken)
            else running.fail({ execution: invoke.execution + 100 }, broken)
          }
          return true
        })
        endings.add(driver.failure?.error.reason ?? 'answered')
        assert.equal(driver.terminals, 1)
        assert.equal(driver.held, 0)
        if (driver.failure !== undefined)
          assert.match(driver.failure.error.message, /^in ensemble 'E', /)
        else if (decoupledSteps === 0) {
          assert.deepEqual(
            driver.emitted.map(({ outputs }) => outputs),
            expectation(s).responses,
          )
        }
      }),
      { numRuns: 600 },
    ),
  )
  t.ok(endings.has('answered') && endings.has('CANCELLED') && endings.has('ENGINE_FAILED'))
})

/** The number of the response that one of the tensors that were read follows from, or -1. */
function responseThatMade(responses: readonly Symbols[], read: Symbols): number {
  const texts = Object.values(read)
  return responses.findIndex((made) =>
    Object.values(made).some((symbol) => texts.some((text) => text.includes(symbol))),
  )
}

/** Fails the execution with number `failing`, after at most `before` of its responses. @returns how many responses come before, if it ran. */
function driveToFailure(s: Scenario, failing: number, before: number) {
  const scripts = new Map<Invoke, Script>()
  /** The answers of the decoupled step. */
  let answers: readonly Symbols[] = []
  let wanted: number | undefined
  const driver = drive(s, (running) => {
    if (wanted !== undefined) return false
    const inFlight = [...running.inFlight.values()]
    const isDecoupled = ({ step }: Invoke): boolean => running.plan.steps[step]?.decoupled === true
    const source = inFlight.find(isDecoupled)
    if (source !== undefined) answers = s.ensemble.answer(source.step, running.read(source))
    const invoke = inFlight.find(({ execution }) => execution === failing)
    if (invoke === undefined) return false
    const sent = scripts.get(invoke)?.sent ?? 0
    if (invoke === source && sent < Math.min(before, answers.length - 1)) {
      step(s, running, invoke, scripts)
      return true
    }
    const label = running.plan.steps[invoke.step]?.label
    if (invoke === source || label === 0) wanted = sent
    else wanted = responseThatMade(answers, running.read(invoke))
    running.fail(invoke, new ServeError('ENGINE_FAILED', 'it broke'))
    return true
  })
  return { driver, wanted }
}

await t.test('the responses before a failure come first, whichever step fails', async (t) => {
  const counts = new Set<number>()
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(SEED, fc.nat(7), fc.nat(3), (seed, failing, before) => {
        const s = scenario(seed * 2, 1)
        const { driver, wanted } = driveToFailure(s, failing + 1, before)
        assert.equal(driver.terminals, 1)
        assert.equal(driver.held, 0)
        if (wanted === undefined) return
        assert.equal(driver.failure?.error.reason, 'ENGINE_FAILED')
        const got = driver.emitted.map(({ outputs }) => outputs)
        assert.deepEqual(got, expectation(s).responses.slice(0, got.length), 'in their order')
        // A step that got nothing of its iteration does not show which one that is.
        if (wanted >= 0) assert.equal(got.length, wanted)
        counts.add(got.length)
      }),
      { numRuns: 600 },
    ),
  )
  t.ok([0, 1, 2].every((count) => counts.has(count)))
})

await t.test('a request for everything plans its graph once', async (t) => {
  const { plan } = randomEnsemble(7, 0)
  const names = plan.outputs.map(({ name }) => name)
  const inputs = Object.fromEntries(plan.inputs.map(({ name }) => [name, name]))
  const runs = [[], names, [...names, ...names]].map((requestedOutputs) => {
    const driver = new EnsembleDriver(plan, { requestedOutputs })
    driver.start(inputs)
    return driver.running
  })
  t.same(runs[0], runs[1])
  t.same(runs[0], runs[2], 'a name given twice counts once')
})
