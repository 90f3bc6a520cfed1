import { createLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import type { EnsembleSource } from '../catalog/ensemble-source.ts'
import { EnsembleComparison } from './ensemble-comparison.ts'

function ensemble(name: string, revision: string, o: Partial<EnsembleSource> = {}): EnsembleSource {
  return { name, labels: {}, versions: [{ version: 1, revision }], reason: '', ...o }
}

/** A comparison of these ensembles with what other routers answer. */
function open(
  ensembles: readonly EnsembleSource[],
  answers: Readonly<Record<string, () => unknown>>,
) {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const ask = async (router: string): Promise<unknown> => {
    const answer = answers[router]
    if (answer === undefined) throw new ServeError('STEP_UNAVAILABLE', 'it is gone')
    return answer()
  }
  const comparison = new EnsembleComparison({
    self: 'router-a',
    host: 'pod-a',
    ensembles: () => ensembles,
    members: Promise.resolve({ ask }),
    log,
  })
  /** Tells of a router, and resolves when it was compared. */
  const changed = async (router: string): Promise<void> => {
    comparison.routerChanged(router)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { comparison, changed, messages: () => lines.map((line) => JSON.parse(line)) }
}

await t.test('two ensembles of one name are logged once, with both routers', async (t) => {
  const theirs = [ensemble('same', 'x'), ensemble('other', 'y'), ensemble('theirs', 'z')]
  const other = open(theirs, {})
  const { comparison, changed, messages } = open(
    [ensemble('same', 'x'), ensemble('other', 'q'), ensemble('ours', 'p')],
    { 'router-b': () => JSON.parse(JSON.stringify(other.comparison.describe())) },
  )
  t.equal(comparison.describe(), comparison.describe(), 'one object, whose digest is made once')
  await changed('router-b')
  await changed('router-b')
  const routers = ['router-a', 'router-b']
  t.match(messages(), [{ level: 'warn', ensemble: 'other', version: 1, routers }])
  t.equal(messages().length, 1)
})

await t.test('a router that cannot be asked, or answers nonsense, does no harm', async (t) => {
  const { changed, messages } = open([], { 'router-b': () => ({ ensembles: [['e', '1', 'y']] }) })
  await changed('router-b')
  await changed('gone')
  t.match(messages(), [
    { router: 'router-b', reason: 'MALFORMED_MESSAGE' },
    { router: 'gone', reason: 'STEP_UNAVAILABLE' },
  ])
})

await t.test(
  'routers are asked one after the other, each once for all its changes meanwhile',
  async (t) => {
    const asked: string[] = []
    const first = Promise.withResolvers<unknown>()
    const nothing = { ensembles: [] }
    const { changed } = open([], {
      slow: () => {
        asked.push('slow')
        return asked.length === 1 ? first.promise : nothing
      },
      other: () => {
        asked.push('other')
        return nothing
      },
    })
    for (const router of ['slow', 'other', 'slow', 'other', 'slow']) await changed(router)
    t.same(asked, ['slow'])
    first.resolve(nothing)
    await new Promise((resolve) => setImmediate(resolve))
    t.same(asked, ['slow', 'other', 'slow'])
  },
)
