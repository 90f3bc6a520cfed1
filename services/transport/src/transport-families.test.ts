import t from 'tap'
import { transportFamilies } from './transport-families.ts'

type Counts = Parameters<typeof transportFamilies>[0]

const ALONE: Counts = {
  brokers: new Map([['primary', { isUp: false, connects: 0, sentBytes: { control: 0, data: 0 } }]]),
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
    'tutti_nats_connected primary 0',
    'tutti_nats_connects_total primary 0',
    'tutti_nats_sent_bytes_total primary,control 0',
    'tutti_nats_sent_bytes_total primary,data 0',
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
  const sentBytes = { control: 5, data: 7 }
  const brokers = new Map([
    ['primary', { isUp: true, connects: 2, sentBytes }],
    ['former', { isUp: false, connects: 1, sentBytes }],
  ])
  const members = new Map([['router', 1] as const, ['step', 4] as const])
  const lines = linesOf({ direct, brokers, members, foreign: 3 })
  for (const line of [
    'tutti_nats_connected primary 1',
    'tutti_nats_connected former 0',
    'tutti_nats_connects_total primary 2',
    'tutti_nats_sent_bytes_total former,data 7',
    'tutti_members step 4',
    'tutti_foreign_members  3',
    'tutti_direct_connections unix,open 3',
    'tutti_direct_connections unix,opening 1',
    'tutti_direct_fallbacks_total unix,broken 2',
  ]) {
    t.ok(lines.includes(line), line)
  }
})
