import t from 'tap'
import { assert } from './assert.ts'
import { REASONS, type Reason } from './reasons.ts'
import { ServeError } from './serve-error.ts'

function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text)
}

await t.test("an error has its reason's usual code", async (t) => {
  for (const reason of Object.keys(REASONS).filter(isReason)) {
    const error = new ServeError(reason, 'text')
    t.equal(error.code, REASONS[reason].code, reason)
    t.equal(error.reason, reason)
  }
})

await t.test('an error is an Error with name, message, stack and empty details', async (t) => {
  const error = new ServeError('QUEUE_FULL', 'Exceeds maximum queue size')
  t.ok(error instanceof Error)
  t.equal(error.name, 'ServeError')
  t.equal(error.message, 'Exceeds maximum queue size')
  t.match(error.stack, /serve-error\.test/)
  t.same(error.details, {})
  t.notOk(Object.hasOwn(error, 'cause'))
})

await t.test('a code of its own overrides the usual one', async (t) => {
  const error = new ServeError('CONFIG_INVALID', 'text', { code: 'INTERNAL' })
  t.equal(error.code, 'INTERNAL')
  t.equal(error.reason, 'CONFIG_INVALID')
})

await t.test('a text that quotes very much is cut, in copies too', async (t) => {
  const error = new ServeError('INTERNAL', 'x'.repeat(2 ** 20))
  for (const { message, stack = '' } of [error, error.withPrefix('y'.repeat(2 ** 20))]) {
    t.equal(message.length, 2 ** 16)
    t.match(message, / \.\.\. \(cut\)$/)
    t.ok(stack.length < 2 ** 17)
  }
  t.equal(new ServeError('INTERNAL', 'x'.repeat(2 ** 16)).message, 'x'.repeat(2 ** 16))
})

await t.test('from returns a ServeError unchanged', async (t) => {
  const error = new ServeError('CANCELLED', 'gone')
  t.equal(ServeError.from(error), error)
})

await t.test('from wraps strangers as INTERNAL and keeps them as the cause', async (t) => {
  const stranger = new TypeError('not a function')
  const cases = [
    { thrown: stranger, message: 'not a function' },
    { thrown: 'text', message: 'text' },
    { thrown: 7, message: '7' },
    { thrown: null, message: 'null' },
    { thrown: { toString: () => 'an object' }, message: 'an object' },
  ]
  for (const { thrown, message } of cases) {
    const error = ServeError.from(thrown)
    t.equal(error.reason, 'INTERNAL')
    t.equal(error.code, 'INTERNAL')
    t.equal(error.message, message)
    t.equal(error.cause, thrown)
  }
  t.notOk(Object.hasOwn(ServeError.from(undefined), 'cause'))
})

await t.test('withPrefix copies: text before, all else kept', async (t) => {
  const cause = new Error('inner')
  const details = { model: 'm', step: 's' }
  const error = new ServeError('ENGINE_FAILED', 'boom', { code: 'UNKNOWN', details, cause })
  const outer = error.withPrefix("in ensemble 'e', ").withPrefix("in ensemble 'f', ")
  t.equal(outer.message, "in ensemble 'f', in ensemble 'e', boom")
  t.equal(outer.code, 'UNKNOWN')
  t.equal(outer.reason, 'ENGINE_FAILED')
  t.same(outer.details, details)
  t.equal(outer.cause, cause)
  t.equal(outer.stack, error.stack)
  t.equal(error.message, 'boom', 'the original is untouched')
})

await t.test('withDetails adds, and what the innermost place knows wins', async (t) => {
  const error = new ServeError('ENGINE_FAILED', 'boom', { details: { model: 'inner' } })
  const outer = error.withDetails({ model: 'outer', ensemble: 'e' })
  t.same(outer.details, { model: 'inner', ensemble: 'e' })
  t.same(error.details, { model: 'inner' })
})

await t.test('withinItems puts the outermost items first', async (t) => {
  const details = { step: 'ocr', item: '5' }
  const error = new ServeError('ENGINE_FAILED', 'boom', { details })
  t.same(error.withinItems('3').withinItems('0..7').details, { ...details, within: '[0..7][3]' })
  t.same(error.details, details)
})

await t.test('a copy of an error without a stack has its own', async (t) => {
  const error = new ServeError('INTERNAL', 'x')
  delete error.stack
  t.type(error.withPrefix('y').stack, 'string')
})

await t.test('assert passes what is true and reports a bug otherwise', async (t) => {
  assert(true, 'never')
  t.throws(() => assert(undefined, 'no slot 7'), {
    reason: 'INTERNAL',
    code: 'INTERNAL',
    message: 'bug: no slot 7',
  })
})
