import { ServeError } from '@tutti/errors'
import t from 'tap'
import { EnsembleDriver, ensemblePlan, stepConfig } from './testing/index.ts'

const BROKEN = new ServeError('ENGINE_FAILED', 'it broke')
const UNAVAILABLE = new ServeError('STEP_UNAVAILABLE', 'no replica')

const CHAIN = ensemblePlan({ input: ['x'], output: ['y'] }, [
  stepConfig('first', { a: 'x' }, { b: 'mid' }),
  stepConfig('second', { a: 'mid' }, { b: 'y' }),
])
const STREAM = ensemblePlan(
  { input: ['x'], output: ['y'] },
  [stepConfig('source', { a: 'x' }, { b: 'mid' }), stepConfig('sink', { a: 'mid' }, { b: 'y' })],
  ['source'],
)

await t.test('a step that cannot have run is tried three times', async (t) => {
  const driver = new EnsembleDriver(CHAIN)
  driver.start({ x: 'X' })
  driver.fail(driver.of('first'), UNAVAILABLE, 'no')
  t.match(driver.of('first'), { attempt: 2 }, 'at once')
  t.same(driver.read(driver.of('first')), { a: 'X' })
  driver.fail(driver.of('first'), UNAVAILABLE, 'no')
  t.same([...driver.timers], [[1, 10]])
  driver.fire(1)
  t.same(driver.fire(1), [], 'a timer fires once')
  driver.fail(driver.of('first'), UNAVAILABLE, 'no')
  t.match(driver.failure?.error, { reason: 'STEP_UNAVAILABLE', details: { attempt: '3' } })
})

await t.test('a step that may have run is not tried again', async (t) => {
  const table = [
    { error: UNAVAILABLE, executed: 'maybe' },
    { error: new ServeError('QUEUE_FULL', 'Exceeds maximum queue size'), executed: 'no' },
    { error: new ServeError('INVALID_REQUEST', 'no such input'), executed: 'no' },
  ] as const
  for (const { error, executed } of table) {
    const driver = new EnsembleDriver(CHAIN)
    driver.start({ x: 'X' })
    driver.fail(driver.of('first'), error, executed)
    t.equal(driver.failure?.error.reason, error.reason)
  }
  const driver = new EnsembleDriver(STREAM)
  driver.start({ x: 'X' })
  driver.respond(driver.of('source'), { b: 'S' }, { final: false })
  driver.fail(driver.of('source'), UNAVAILABLE, 'no')
  t.equal(driver.failure?.error.reason, 'STEP_UNAVAILABLE', 'it has answered, so it has run')
})

await t.test('a cancel clears the timer of a further attempt', async (t) => {
  const driver = new EnsembleDriver(CHAIN)
  driver.start({ x: 'X' })
  for (const _ of [1, 2]) driver.fail(driver.of('first'), UNAVAILABLE, 'no')
  const actions = driver.send({ type: 'Cancelled', error: BROKEN })
  t.match(actions, [{ type: 'ClearTimer', timer: 1 }, { type: 'ReleaseTensor' }, { type: 'Fail' }])
})
