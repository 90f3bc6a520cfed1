import { systemClock } from '@tutti/chassis'
import { ScriptedBackend } from '@tutti/serving/testing'
import { RequestCaptures } from '@tutti/telemetry'
import t from 'tap'
import { NextRequest } from './api/next-request.ts'
import type { ConsoleSource } from './console-source.ts'
import { readNextRequest } from './read-next-request.ts'

const ENTRY = { name: 'm', version: '1', state: 'READY', reason: '' } as const

function setup(o: { readonly mayControl?: boolean } = {}) {
  const backend = new ScriptedBackend({})
  backend.index = [ENTRY]
  const { mayControl } = o
  if (mayControl !== undefined) {
    Object.assign(backend, { identity: { name: 'ci', mayControl } })
  }
  const captures = new RequestCaptures(systemClock)
  const asked: unknown[] = []
  const source: Pick<ConsoleSource, 'waitForRequest' | 'stopWaiting'> = {
    waitForRequest: ({ page, turn, wanted }) => {
      asked.push([page, wanted])
      return captures.wait(page, turn, wanted)
    },
    stopWaiting: ({ page, turn }) => captures.stop(page, turn),
  }
  const read = (query: string, model = 'm') =>
    readNextRequest({
      source,
      backend,
      model,
      query: new URLSearchParams(query),
      clock: systemClock,
    })
  return { read, asked, captures, backend }
}

await t.test('what a page may want', async (t) => {
  const { read, asked, captures } = setup()
  for (const query of [
    'want=any',
    'want=failed',
    'want=slow&slowerThanMs=2.5',
    'want=id&id=a%20b',
  ]) {
    NextRequest.parse(await read(`page=p&turn=${asked.length}&${query}`))
  }
  t.same(
    asked,
    [{}, { isFailed: true }, { slowerThanMs: 2.5 }, { id: 'a b' }].map((one) => [
      ' p',
      { model: 'm', ...one },
    ]),
  )
  t.ok(captures.isWaiting)
  await read('page=p&turn=3')
  t.notOk(captures.isWaiting, 'a page that wants none waits no more')
})

await t.test('a page asks rarely where the index is long', async (t) => {
  const { read, backend } = setup()
  t.equal((await read('page=p&turn=1&want=any')).nextMs, 500)
  const others = Array.from({ length: 999 }, (_, i) => ({ ...ENTRY, name: `m${i}` }))
  backend.index = [ENTRY, ...others]
  t.equal((await read('page=p&turn=1&want=any')).nextMs, 10_000)
})

await t.test('what it may not', async (t) => {
  const { read, asked } = setup()
  const cases = [
    ['want=any', /page/],
    ['page=p&turn=1&want=all', /want/],
    ['page=p&turn=1&want=slow', /without slowerThanMs/],
    ['page=p&turn=1&want=slow&slowerThanMs=soon', /slowerThanMs/],
    ['page=p&turn=1&want=id', /without id/],
  ] as const
  for (const [query, message] of cases) {
    await t.rejects(read(query), { reason: 'INVALID_PARAMETER', message }, query)
  }
  await t.rejects(read('page=p&turn=1&want=any', 'hidden'), { message: /is not found/ })
  t.same(asked, [])
})

await t.test('with identities only one that may change the server sees requests', async (t) => {
  await t.rejects(setup({ mayControl: false }).read('page=p&turn=1&want=any'), {
    message: "identity 'ci' may not see requests of others",
  })
  const { read, asked } = setup({ mayControl: true })
  await read('page=p&turn=1&want=any')
  t.match(asked, [['ci p']], 'the pages of an identity are its own')
})
