import t from 'tap'
import { transportFamilies } from './transport-families.ts'

/** As `name{label values} value`. */
function linesOf(counts: Parameters<typeof transportFamilies>[0]): readonly string[] {
  return transportFamilies(counts).flatMap(({ name, series }) =>
    series.map(({ labels, value }) => `${name} ${labels.map((label) => label[1]).join()} ${value}`),
  )
}

await t.test('all series are there from the start', async (t) => {
  t.same(linesOf({ direct: undefined }), [])
  const direct = { kind: 'tls', open: 0, opening: 0, fallbacks: new Map() } as const
  t.same(linesOf({ direct }), [
    'tutti_direct_connections tls,open 0',
    'tutti_direct_connections tls,opening 0',
    'tutti_direct_fallbacks_total tls,address 0',
    'tutti_direct_fallbacks_total tls,connect 0',
    'tutti_direct_fallbacks_total tls,closed 0',
    'tutti_direct_fallbacks_total tls,broken 0',
  ])
})

await t.test('each count is in its series', async (t) => {
  const fallbacks = new Map([['broken', 2] as const])
  const direct = { kind: 'unix', open: 3, opening: 1, fallbacks } as const
  const lines = linesOf({ direct })
  for (const line of [
    'tutti_direct_connections unix,open 3',
    'tutti_direct_connections unix,opening 1',
    'tutti_direct_fallbacks_total unix,broken 2',
  ]) {
    t.ok(lines.includes(line), line)
  }
})
