import t from 'tap'
import { transportFamilies } from './transport-families.ts'

type Counts = Parameters<typeof transportFamilies>[0]

const ALONE: Counts = {
  broker: { isUp: false, connects: 0, sentBytes: { control: 0, data: 0 } },
  members: new Map([['router', 0]]),
  foreign: 0,
  direct: undefined,
}

/** As `name{label values} value`. */
function linesOf(counts: Partial<Counts>): readonly string[] {
  return transportFamilies({ ...ALONE, ...counts }).flatMap(({ name, series }) =>
    series.map(({ labels, value }) => `${name} ${labels.map((label) => label[1]).join()} ${value}`),
  )
}

await t.test('all series are there from the start', async (t) => {
  const always = [
    'tutti_nats_connected  0',
    'tutti_nats_connects_total  0',
    'tutti_nats_sent_bytes_total control 0',
    'tutti_nats_sent_bytes_total data 0',
    'tutti_members router 0',
    'tutti_foreign_members  0',
  ]
  t.same(linesOf({}), always)
  const direct = { kind: 'tls', open: 0, opening: 0, fallbacks: new Map() } as const
  t.same(linesOf({ direct }), [
    ...always,
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
  const broker = { isUp: true, connects: 2, sentBytes: { control: 5, data: 7 } }
  const members = new Map([['router', 1] as const, ['step', 4] as const])
  const lines = linesOf({ direct, broker, members, foreign: 3 })
  for (const line of [
    'tutti_nats_connected  1',
    'tutti_nats_connects_total  2',
    'tutti_nats_sent_bytes_total data 7',
    'tutti_members step 4',
    'tutti_foreign_members  3',
    'tutti_direct_connections unix,open 3',
    'tutti_direct_connections unix,opening 1',
    'tutti_direct_fallbacks_total unix,broken 2',
  ]) {
    t.ok(lines.includes(line), line)
  }
})
