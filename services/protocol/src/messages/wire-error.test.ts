import { REASONS, type Reason, ServeError } from '@tutti/errors'
import t from 'tap'
import { fromWireError, toWireError } from './wire-error.ts'

function isReason(text: string): text is Reason {
  return text in REASONS
}

await t.test('every reason survives with code, text and details', async (t) => {
  const details = {
    ensemble: 'e',
    step: 's',
    model: 'm',
    version: '1',
    replica: 'r',
    attempt: '2',
    field: 'f',
  }
  for (const reason of Object.keys(REASONS).filter(isReason)) {
    const error = new ServeError(reason, `text of ${reason}`, { code: 'DATA_LOSS', details })
    const got = fromWireError(toWireError(error))
    t.match(got, { reason, code: 'DATA_LOSS', message: `text of ${reason}` })
    t.same(got.details, details)
  }
})

await t.test('causes and unknown details stay on their side', async (t) => {
  const wire = toWireError(new ServeError('INTERNAL', 'x', { cause: new Error('secret') }))
  t.same(wire, { code: 'INTERNAL', reason: 'INTERNAL', message: 'x', details: {} })
  const got = fromWireError({ ...wire, details: Object.fromEntries([['__proto__', 'x']]) })
  t.same(got.details, {})
})

await t.test(
  'a reason that only newer members know becomes INTERNAL, code and text stay',
  async (t) => {
    for (const reason of ['TOO_WARM', 'toString', '']) {
      const got = fromWireError({ code: 'UNAVAILABLE', reason, message: 'why', details: {} })
      t.match(got, { reason: 'INTERNAL', code: 'UNAVAILABLE', message: 'why' })
    }
  },
)

await t.test('texts that are too long for a message are cut with a mark', async (t) => {
  const error = new ServeError('ENGINE_FAILED', 'é'.repeat(100_000), {
    details: { model: 'm'.repeat(5000) },
  })
  const wire = toWireError(error)
  t.ok(Buffer.byteLength(wire.message) <= 64 * 1024)
  t.ok(wire.message.endsWith(' ... (cut)'))
  t.ok(Buffer.byteLength(wire.details['model'] ?? '') <= 4096)
})
