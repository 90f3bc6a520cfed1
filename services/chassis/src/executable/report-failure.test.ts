import { ServeError } from '@tutti/errors'
import t from 'tap'
import { ErrorResult, reportFailure, reportProblem } from './report-failure.ts'

function print(report: (output: { err(text: string): void }) => unknown) {
  let err = ''
  const returned = report({ err: (text) => void (err += text) })
  return { err, returned }
}

await t.test('an error as JSON is one line that its schema takes, with the same exit code', (t) => {
  const cases = [
    [new ServeError('FLAG_INVALID', 'x'), 2, 'INVALID_ARGUMENT'],
    [
      new ServeError('MODEL_NOT_FOUND', 'a\nb\u001b[2J\u0085', { code: 'UNAVAILABLE' }),
      1,
      'UNAVAILABLE',
    ],
    [new Error('boom'), 1, 'INTERNAL'],
  ] as const
  for (const [error, exit, code] of cases) {
    const { reason } = ServeError.from(error)
    const { err, returned } = print((to) =>
      reportFailure('p', error, { ...to, errorFormat: 'json' }),
    )
    t.equal(returned, exit)
    // oxlint-disable-next-line no-control-regex -- they are what a line must not have
    t.match(err, /^[^\n\u0000-\u001f\u007f-\u009f]*\n$/)
    t.same(ErrorResult.parse(JSON.parse(err)), {
      error: {
        reason,
        code,
        message: error.message,
        help: `https://tutti.dev/docs/errors/#${reason.toLowerCase()}`,
      },
    })
  }
  t.end()
})

await t.test('an error of another program has no page here', (t) => {
  const error = new ServeError('ACCESS_DENIED', 'forbidden')
  const { err } = print((to) =>
    reportProblem('p', error, { ...to, errorFormat: 'json' }, { isOfOthers: true }),
  )
  const { error: told } = ErrorResult.parse(JSON.parse(err))
  t.same(told, { reason: 'ACCESS_DENIED', code: 'PERMISSION_DENIED', message: 'forbidden' })
  t.end()
})
