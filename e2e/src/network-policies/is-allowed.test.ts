import t from 'tap'
import type { Address, Connection, Node, Party, Pod } from './connection.ts'
import { isAllowed } from './is-allowed.ts'
import {
  type EgressRule,
  type IngressRule,
  type Labels,
  type NetworkPolicy,
  type Peer,
  type PolicyPort,
  toNetworkPolicy,
} from './network-policy.ts'

const NAMESPACES = { default: { name: 'default' }, other: { project: 'x' }, third: {} }

const pod = (namespace: string, name: string, labels: Labels, ip: string): Pod => ({
  kind: 'pod',
  namespace,
  name,
  labels,
  ip,
  node: 'node-1',
  ports: [
    { name: 'web', port: 80, protocol: 'TCP' },
    { name: 'dns', port: 53, protocol: 'UDP' },
  ],
})

const DB = pod('default', 'db', { role: 'db' }, '10.0.0.1')
const FRONT = pod('default', 'front', { role: 'frontend' }, '10.0.0.2')
const BARE = pod('default', 'bare', {}, '10.0.0.3')
const FAR = pod('other', 'far', { role: 'frontend' }, '10.0.1.1')
const FAR_BARE = pod('other', 'bare', {}, '10.0.1.2')
const THIRD = pod('third', 'front', { role: 'frontend' }, '10.0.2.1')
const NODE: Node = { kind: 'node', name: 'node-1', ip: '192.168.0.1' }
const OTHER_NODE: Node = { kind: 'node', name: 'node-2', ip: '192.168.0.2' }
const OUTSIDE: Address = { kind: 'address', ip: '172.17.0.9' }
const OUTSIDE_6: Address = { kind: 'address', ip: '2001:db8::9' }
const PODS: readonly Party[] = [DB, FRONT, BARE, FAR, FAR_BARE, THIRD]
const EVERYBODY: readonly Party[] = [...PODS, NODE, OTHER_NODE, OUTSIDE, OUTSIDE_6]

type Spec = NetworkPolicy['spec']

const policy = (spec: Spec, namespace = 'default'): NetworkPolicy =>
  toNetworkPolicy({ metadata: { name: 'p', namespace }, spec })

const forDb = (...ingress: readonly IngressRule[]): NetworkPolicy =>
  policy({ podSelector: { matchLabels: { role: 'db' } }, ingress, policyTypes: ['Ingress'] })

const ofDb = (...egress: readonly EgressRule[]): NetworkPolicy =>
  policy({ podSelector: { matchLabels: { role: 'db' } }, egress, policyTypes: ['Egress'] })

const allows = (policies: readonly NetworkPolicy[], connection: Connection): boolean =>
  isAllowed({ namespaces: NAMESPACES, policies }, connection)

const nameOf = (party: Party): string =>
  party.kind === 'pod'
    ? `${party.namespace}/${party.name}`
    : party.kind === 'node'
      ? party.name
      : party.ip

/** Who reaches DB at port 80. */
const whoReaches = (...policies: readonly NetworkPolicy[]): readonly string[] =>
  EVERYBODY.filter((from) => allows(policies, { from, to: DB, port: 80 })).map(nameOf)

/** Whom DB reaches at port 80. */
const whomReaches = (...policies: readonly NetworkPolicy[]): readonly string[] =>
  EVERYBODY.filter((to) => allows(policies, { from: DB, to, port: 80 })).map(nameOf)

const ALL = EVERYBODY.map(nameOf)
/** Itself and its node, which nothing keeps away. */
const HOME = ['default/db', 'node-1']

const sorted = (names: readonly string[]): readonly string[] =>
  ALL.filter((name) => names.includes(name))

await t.test('a pod that no policy selects is open in both directions', async (t) => {
  const away = policy({ podSelector: { matchLabels: { role: 'x' } }, policyTypes: ['Ingress'] })
  const elsewhere = policy({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] }, 'other')
  t.same(whoReaches(), ALL)
  t.same(whoReaches(away), ALL)
  t.same(
    whoReaches(elsewhere),
    ALL.filter((name) => !name.startsWith('other/')),
    'their egress',
  )
})

await t.test(
  'a rule without peers allows all pods, a list without rules allows none',
  async (t) => {
    t.same(whoReaches(forDb({})), ALL)
    t.same(whoReaches(forDb({ from: [] })), ALL)
    t.same(whoReaches(forDb()), HOME)
    t.same(whomReaches(ofDb({})), ALL)
    t.same(whomReaches(ofDb({ to: [] })), ALL)
    t.same(whomReaches(ofDb()), HOME)
  },
)

const front = { matchLabels: { role: 'frontend' } }
const within = (...values: string[]) => ({
  matchExpressions: [{ key: 'role', operator: 'In', values }],
})
const projectX = { matchLabels: { project: 'x' } }

await t.test('who a peer is', async (t) => {
  const cases: readonly (readonly [string, readonly Peer[], readonly string[]])[] = [
    ['pods of the own namespace', [{ podSelector: front }], ['default/front']],
    ['all of the own namespace', [{ podSelector: {} }], ['default/front', 'default/bare']],
    ['all of a namespace', [{ namespaceSelector: projectX }], ['other/far', 'other/bare']],
    [
      'both in one peer: those pods of that namespace',
      [{ namespaceSelector: projectX, podSelector: front }],
      ['other/far'],
    ],
    [
      'in two peers: either',
      [{ namespaceSelector: projectX }, { podSelector: front }],
      ['default/front', 'other/far', 'other/bare'],
    ],
    [
      'of all namespaces, but nothing that is no pod',
      [{ namespaceSelector: {} }],
      ALL.filter((name) => name.includes('/')),
    ],
    [
      'those pods of all namespaces',
      [{ namespaceSelector: {}, podSelector: front }],
      ['default/front', 'other/far', 'third/front'],
    ],
    ['an address', [{ ipBlock: { cidr: '172.17.0.9/32' } }], ['172.17.0.9']],
    ['a range without a part', [{ ipBlock: { cidr: '172.17.0.0/16' } }], ['172.17.0.9']],
    ['of IPv6', [{ ipBlock: { cidr: '2001:db8::/32' } }], ['2001:db8::9']],
    ['all of IPv4', [{ ipBlock: { cidr: '0.0.0.0/0' } }], ALL.filter((n) => !n.includes(':'))],
    ['another node', [{ ipBlock: { cidr: '192.168.0.0/24' } }], ['node-2']],
    ['by an expression', [{ podSelector: within('web', 'frontend') }], ['default/front']],
  ]
  for (const [what, peers, others] of cases) {
    t.same(whoReaches(forDb({ from: peers })), sorted([...HOME, ...others]), `from: ${what}`)
    t.same(whomReaches(ofDb({ to: peers })), sorted([...HOME, ...others]), `to: ${what}`)
  }
  const exists = { matchExpressions: [{ key: 'app', operator: 'Exists' }] }
  t.throws(() => whoReaches(forDb({ from: [{ podSelector: exists }] })), /got Exists, want In/)
  t.throws(() => whoReaches(forDb({ from: [{}] })), /p: got a peer without a field/)
  const nowhere = pod('nowhere', 'x', {}, '10.9.9.9')
  const known = [forDb({ from: [{ podSelector: {} }] })]
  t.throws(() => allows(known, { from: nowhere, to: DB, port: 80 }), /none called nowhere/)
})

await t.test('which ports a rule is for', async (t) => {
  const cases: readonly (readonly [PolicyPort, number, 'TCP' | 'UDP', boolean])[] = [
    [{ port: 80 }, 80, 'TCP', true],
    [{ port: 80 }, 80, 'UDP', false],
    [{ port: 80 }, 81, 'TCP', false],
    [{ port: 53, protocol: 'UDP' }, 53, 'UDP', true],
    [{ port: 53, protocol: 'UDP' }, 53, 'TCP', false],
    [{}, 65_535, 'TCP', true],
    [{}, 65_535, 'UDP', false],
    [{ port: 'web' }, 80, 'TCP', true],
    [{ port: 'web' }, 81, 'TCP', false],
    [{ port: 'web', protocol: 'UDP' }, 80, 'UDP', false],
    [{ port: 'dns' }, 53, 'TCP', false],
    [{ port: 'dns', protocol: 'UDP' }, 53, 'UDP', true],
    [{ port: 'none' }, 80, 'TCP', false],
  ]
  for (const [rule, port, protocol, expected] of cases) {
    const what = `${JSON.stringify(rule)} ${port}/${protocol}`
    const ports = [rule]
    t.equal(allows([forDb({ ports })], { from: FRONT, to: DB, port, protocol }), expected, what)
    t.equal(allows([ofDb({ ports })], { from: DB, to: FRONT, port, protocol }), expected, what)
  }
  t.equal(allows([forDb({ ports: [] })], { from: FRONT, to: DB, port: 9 }), true)
  // Pod and port have to fit in one rule.
  const rules = forDb(
    { from: [{ podSelector: front }], ports: [{ port: 80 }] },
    { from: [{ namespaceSelector: projectX }], ports: [{ port: 81 }] },
  )
  t.equal(allows([rules], { from: FRONT, to: DB, port: 81 }), false)
  t.equal(allows([rules], { from: FAR, to: DB, port: 81 }), true)
  const named = [ofDb({ ports: [{ port: 'web' }] })]
  t.equal(allows(named, { from: DB, to: OUTSIDE, port: 80 }), false, 'an address has no names')
})

await t.test('policies add up, and both ends have to let', async (t) => {
  const fromFront = forDb({ from: [{ podSelector: front }] })
  const fromX = forDb({ from: [{ namespaceSelector: projectX }] })
  t.same(
    whoReaches(fromFront, fromX),
    sorted([...HOME, 'default/front', 'other/far', 'other/bare']),
  )
  const shut = policy({ podSelector: {}, policyTypes: ['Egress'] })
  t.same(whoReaches(fromFront, shut), HOME, 'the egress of the other end')
  const open = policy({ podSelector: front, policyTypes: ['Egress'], egress: [{}] })
  t.same(whoReaches(fromFront, shut, open), sorted([...HOME, 'default/front']))
  t.same(whoReaches(open), ALL, 'egress opens no ingress and shuts none')
  t.equal(allows([forDb()], { from: DB, to: FRONT, port: 80 }), true, 'answers need no leave')
})

await t.test('no policy keeps a pod from itself, nor its kubelet from its probes', async (t) => {
  const none = policy({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] })
  t.same(whoReaches(none), HOME)
  t.same(whomReaches(none), HOME)
  const twin = { ...DB, name: 'db-2' }
  t.equal(allows([none], { from: twin, to: DB, port: 80 }), false, 'another pod of its kind')
})

const bad = (spec: object) => () => toNetworkPolicy({ metadata: { name: 'p' }, spec })

await t.test('a field that would be ignored is an error', async (t) => {
  t.throws(bad({ ingres: [] }), /spec: got ingres, want podSelector, /)
  t.throws(bad({ ingress: [{ to: [] }] }), /ingress: got to, want from, ports/)
  t.throws(bad({ egress: [{ to: [{ nodeSelector: {} }] }] }), /to: got nodeSelector/)
  t.throws(bad({ ingress: [{ ports: [{ targetPort: 1 }] }] }), /ports: got targetPort/)
  t.throws(bad({ podSelector: {}, ingress: null }), /spec: got no policyTypes/)
})
