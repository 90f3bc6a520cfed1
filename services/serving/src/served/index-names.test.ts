import t from 'tap'
import { withNames } from './index-names.ts'

const line = (name: string, reason: string, version = '1') => {
  return {
    name,
    version,
    state: reason === '' ? ('READY' as const) : ('UNAVAILABLE' as const),
    reason,
  }
}

await t.test('what was never loaded is listed by name, in its place', async (t) => {
  const served = [line('c', '', '1'), line('c', '', '2'), line('a', 'unloaded')]
  t.same(withNames(served, ['c', 'b', 'a']), [
    line('a', 'unloaded'),
    { name: 'b', version: '', state: '', reason: '' },
    line('c', '', '1'),
    line('c', '', '2'),
  ])
})

await t.test('what is not served and is not there any more is not listed', async (t) => {
  const served = [line('failed', 'Internal: no'), line('gone', 'unloaded'), line('kept', '')]
  t.same(withNames(served, ['failed']), [line('failed', 'Internal: no'), line('kept', '')])
  t.same(withNames(served, []), [line('kept', '')])
})
