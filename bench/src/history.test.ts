import { readFileSync } from 'node:fs'
import {
  array,
  assert,
  constant,
  constantFrom,
  dictionary,
  double,
  record as object,
  property,
} from 'fast-check'
import t from 'tap'
import { findLosses, type History, record } from './history.ts'

const entry = object({
  version: constantFrom('0.1.0', '0.2.0', '0.3.0'),
  date: constant('2026-11-26'),
  commit: constant('abc'),
  ratios: dictionary(constantFrom('a', 'b', 'c'), double({ min: 0.01, max: 100, noNaN: true })),
})
const histories = array(entry, { maxLength: 4 })

const read = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))

await t.test('what is recorded is no loss, and a fifth less is one', (t) => {
  assert(
    property(histories, entry, (history, { ratios, ...now }) => {
      const after = record(history, now, ratios)
      t.same(findLosses(after, ratios), [])
      const less = Object.fromEntries(Object.entries(ratios).map(([name, r]) => [name, r * 0.8]))
      t.equal(findLosses(after, less).length, Object.keys(ratios).length)
    }),
  )
  t.end()
})

await t.test('a release has one entry, and others stay as they are', (t) => {
  assert(
    property(histories, entry, (history, { ratios, ...now }) => {
      const after = record(history, now, ratios)
      const last = history.at(-1)
      const kept = last?.version === now.version ? history.length - 1 : history.length
      t.same(after.slice(0, kept), history.slice(0, kept))
      t.equal(after.length, kept + 1)
      const names = [...Object.keys(history[kept]?.ratios ?? {}), ...Object.keys(ratios)]
      t.same(new Set(Object.keys(after.at(-1)?.ratios ?? {})), new Set(names))
    }),
  )
  t.end()
})

await t.test('a ratio is compared with the last release that has it', (t) => {
  const at = { date: '2026-11-26', commit: 'abc' }
  const history: History = [
    { ...at, version: '0.1.0', ratios: { a: 2, b: 1 } },
    { ...at, version: '0.2.0', ratios: { b: 2 } },
  ]
  t.same(findLosses(history, { a: 1.81, b: 1.81, c: 0.1 }), [])
  t.same(findLosses(history, { a: 1.5, b: 1.5 }), [
    'a: 1.5, 25 % below the 2 of 0.1.0, 2026-11-26',
    'b: 1.5, 25 % below the 2 of 0.2.0, 2026-11-26',
  ])
  t.end()
})

await t.test('history.json is a history, with the release of this checkout', (t) => {
  const history: History = read('../history.json')
  const ratio = /^\d+(\.\d+)?$/
  for (const { version, date, commit, ratios } of history) {
    t.match(
      { version, date, commit },
      { version: /^\d+\.\d+\.\d+/, date: /^20\d\d-\d\d-\d\d$/, commit: /^[0-9a-f]{7,}$/ },
    )
    for (const [name, value] of Object.entries(ratios)) t.match(String(value), ratio, name)
  }
  t.same(new Set(history.map(({ version }) => version)).size, history.length)
  t.equal(history.at(-1)?.version, read('../../package.json').version)
  t.end()
})
