import t from 'tap'
import * as errors from './kube-error.ts'

const { KubeError, noAnswer: _, ...PREDICATES } = errors

/** Names of the predicates that hold for an error. */
function holding(error: unknown): string[] {
  return Object.entries(PREDICATES)
    .filter(([, holds]) => holds(error))
    .map(([name]) => name)
}

const field = (name: string) => ({ causes: [{ field: name }] })

/** Errors that API servers of 1.34 were seen to answer. */
const CASES: readonly (readonly [Partial<errors.KubeError>, readonly string[]])[] = [
  [{ status: 0, reason: 'NoConnection' }, ['isTransient']],
  [{ status: 400, reason: 'BadRequest' }, ['isTerminal']],
  [{ status: 401, reason: 'Unauthorized' }, []],
  [{ status: 403, reason: 'Forbidden' }, ['isForbidden']],
  [
    { status: 403, reason: 'Forbidden', causes: [{ reason: 'NamespaceTerminating' }] },
    ['isForbidden', 'isNamespaceTerminating'],
  ],
  [{ status: 404, reason: 'NotFound' }, ['isNotFound']],
  [{ status: 408, reason: 'Timeout' }, ['isTransient']],
  [{ status: 409, reason: 'AlreadyExists' }, ['isAlreadyExists']],
  [{ status: 409, reason: 'Conflict', message: 'the object has been modified' }, ['isConflict']],
  [
    {
      status: 409,
      reason: 'Conflict',
      message: 'uid mismatch: the provided object specified uid x',
    },
    ['isConflict', 'isUidMismatch'],
  ],
  [
    { status: 409, reason: 'Conflict', message: 'Precondition failed: UID in precondition: x' },
    ['isConflict', 'isUidMismatch'],
  ],
  [{ status: 410, reason: 'Expired' }, ['isExpired']],
  [{ status: 410, reason: 'Gone' }, ['isExpired']],
  [{ status: 413, reason: 'RequestEntityTooLarge' }, ['isTerminal']],
  [{ status: 422, reason: 'Invalid', ...field('spec.replicas') }, ['isTerminal']],
  [{ status: 422, reason: 'Invalid', ...field('metadata.uid') }, ['isUidMismatch']],
  [{ status: 429, reason: 'TooManyRequests' }, ['isTransient']],
  [{ status: 500, reason: 'InternalError', message: 'etcd is gone' }, ['isTransient']],
  [
    { status: 500, reason: '', message: '.spec.color: field not declared in schema' },
    ['isTerminal'],
  ],
  [
    { status: 500, reason: 'InternalError', message: 'etcdserver: request is too large' },
    ['isTerminal'],
  ],
  [{ status: 503, reason: 'ServiceUnavailable' }, ['isTransient']],
  [{ status: 504, reason: 'Timeout' }, ['isTransient']],
]

await t.test('what can be done about an error', async (t) => {
  for (const [o, expected] of CASES) {
    const { status = 0, reason = '', message = 'x', causes = [] } = o
    const error = new KubeError({ status, reason, message, causes })
    t.same(holding(error), expected, `${status} ${reason} ${message}`)
  }
})

await t.test('errors of others are none of them', async (t) => {
  for (const error of [new Error('x'), undefined, null, 'x', { status: 404 }]) {
    t.same(holding(error), [])
  }
})

await t.test('it keeps what the server said and what caused it', async (t) => {
  const cause = new Error('reset')
  const o = { status: 0, reason: 'NoConnection', message: 'GET /x: reset', retryAfterMs: 5, cause }
  const error = new KubeError(o)
  t.match(error, { ...o, name: 'KubeError', causes: [] })
  t.equal(new KubeError({ status: 1, reason: '', message: '' }).retryAfterMs, undefined)
})
