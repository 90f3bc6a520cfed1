import type { Event, Pod, Stored } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import type { EnsembleObject, ModelObject, RouterObject } from '../resources.ts'
import { buildNodes } from './build-nodes.ts'
import type { NamespaceState } from './read-state.ts'
import { renderNodes } from './render-nodes.ts'
import { isBroken, type StatusNode } from './tree.ts'

const NOW = Date.parse('2026-11-27T10:00:00Z')
const OLD = '2026-11-27T09:00:00Z'

const meta = (name: string, more: object = {}) => ({
  name,
  namespace: 'shop',
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: OLD,
  generation: 2,
  ...more,
})
const condition = (
  type: string,
  status: 'True' | 'False',
  reason = 'AsExpected',
  message = '',
) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: OLD,
})
const READY = { observedGeneration: 2, conditions: [condition('Ready', 'True', 'Ready')] }
const notReady = (reason: string, message: string) => ({
  observedGeneration: 2,
  conditions: [condition('Ready', 'False', reason, message)],
})

function model(name: string, status: object | undefined, spec = {}): Stored<ModelObject> {
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Model',
    metadata: meta(name),
    spec,
    ...(status !== undefined && { status }),
  }
}

function ensemble(
  name: string,
  steps: Readonly<Record<string, object>>,
  status: object = READY,
): Stored<EnsembleObject> {
  const written = Object.entries(steps).map(([step, ref]) => ({ name: step, ...ref }))
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Ensemble',
    metadata: meta(name),
    spec: { steps: written },
    status,
  }
}

const runs = (name: string) => ({ modelRef: { name } })

function pod(
  of: string,
  status: object,
  more: { spec?: object; metadata?: object } = {},
): Stored<Pod> {
  const labels =
    of === 'router'
      ? { 'app.kubernetes.io/component': 'router' }
      : { 'app.kubernetes.io/component': 'step', 'tutti.dev/model': of }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: meta(`${of}-pod`, { labels, ...more.metadata }),
    spec: { containers: [], nodeName: 'n', ...more.spec },
    status,
  }
}

function event(of: string, reason: string, note: string, times: object): Stored<Event> {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: meta(`${of}.${reason}`),
    eventTime: '',
    reportingController: 'kubelet',
    reportingInstance: 'n',
    action: '',
    type: 'Warning',
    reason,
    note,
    regarding: { kind: 'Pod', uid: `uid-${of}-pod` },
    ...times,
  }
}

const ROUTER: Stored<RouterObject> = {
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Router',
  metadata: meta('default'),
  status: READY,
}

function nodesOf(state: Partial<NamespaceState>, name?: string): readonly StatusNode[] {
  const all = { namespace: 'shop', ensembles: [], models: [], routers: [], pods: [], events: [] }
  return buildNodes({ ...all, ...state }, { name, nowMs: NOW })
}

/** The cause of the first node. */
function causeOf(state: Partial<NamespaceState>): string {
  const { state: is, cause } = nodesOf(state)[0] ?? {}
  return `${is} ${cause?.reason} ${cause?.message}`
}

const container = (state: object, more: object = {}) => ({
  containerStatuses: [{ name: 'main', ready: false, restartCount: 0, state, ...more }],
})

await t.test('a pod that waits says for what', (t) => {
  const waits = notReady('PodsNotReady', '0 of 1 wanted pod available')
  const cases: [Stored<Pod>, Stored<Event>[], RegExp][] = [
    [
      pod('m', { phase: 'Pending' }, { spec: { nodeName: undefined } }),
      [],
      /^NotReady Pending pod "m-pod": the pod waits for a node$/,
    ],
    [
      pod('m', {
        initContainerStatuses: [{ name: 'fetch', ready: false, state: { running: {} } }],
      }),
      [],
      /Initializing .*init container "fetch" is running$/,
    ],
    [
      pod('m', container({ waiting: { reason: 'ContainerCreating' } })),
      [
        event('m', 'FailedMount', 'secret "s" not found', {
          deprecatedLastTimestamp: '2026-11-27T09:59:59Z',
        }),
        event('m', 'FailedScheduling', 'long ago', { eventTime: '2026-11-27T09:00:01.000000Z' }),
        event('other', 'Unhealthy', 'not ours', { eventTime: '2026-11-27T10:00:00.000000Z' }),
      ],
      /FailedMount pod "m-pod": secret "s" not found$/,
    ],
    [
      pod('m', container({ waiting: { reason: 'ContainerCreating' } })),
      [],
      /ContainerCreating .*"main" has not started yet$/,
    ],
    [
      pod('m', container({ running: {} }, { started: false })),
      [],
      /Starting .*"main" is starting$/,
    ],
    [
      pod('m', container({ running: {} }, { started: true })),
      [],
      /ContainerNotReady .*runs and is not ready yet$/,
    ],
    [
      pod('m', {
        conditions: [
          {
            type: 'accepted.tutti.dev/m',
            status: 'False',
            reason: 'NotRouted',
            message: 'not yet',
          },
        ],
      }),
      [],
      /NotRouted .*: not yet$/,
    ],
    [pod('m', { phase: 'Running' }), [], /Running .*the pod is not ready yet$/],
  ]
  for (const [one, events, wanted] of cases) {
    t.match(causeOf({ models: [model('m', waits)], pods: [one], events }), wanted)
  }
  const leaving = pod('m', {}, { metadata: { deletionTimestamp: OLD } })
  t.equal(
    causeOf({ models: [model('m', waits)], pods: [leaving] }),
    'NotReady PodsNotReady 0 of 1 wanted pod available',
    'a pod that is going is not the cause',
  )
  t.end()
})

await t.test('what a resource says of itself goes before what it waits for', (t) => {
  const pods = [pod('m', { phase: 'Running' })]
  const status = notReady('ModelLoadFailed', 'no graph')
  t.equal(causeOf({ models: [model('m', status)], pods }), 'NotReady ModelLoadFailed no graph')
  const refused = {
    ...READY,
    conditions: [
      condition('Accepted', 'False', 'CycleDetected', 'a, b'),
      condition('Ready', 'False', 'NotAccepted'),
    ],
  }
  t.equal(causeOf({ ensembles: [ensemble('e', {}, refused)] }), 'NotReady CycleDetected a, b')
  const degraded = {
    ...READY,
    conditions: [...READY.conditions, condition('Degraded', 'True', 'ApplyFailed', 'quota')],
  }
  t.equal(causeOf({ models: [model('m', degraded)] }), 'Degraded ApplyFailed quota')
  t.match(
    causeOf({ models: [model('m', undefined)] }),
    /NotObserved .*generation 2 yet; is it running\?/,
  )
  t.match(causeOf({ models: [model('m', { ...READY, observedGeneration: 1 })] }), /NotObserved/)
  t.equal(
    causeOf({ models: [model('m', { observedGeneration: 2 })] }),
    'NotReady Pending it has no status yet',
  )
  t.end()
})

await t.test('an Ensemble shows the cause that its steps have, at any depth', (t) => {
  const waits = notReady('NotReady', 'step "s" is not ready')
  const below = {
    ensembles: [
      ensemble('outer', { s: { ensembleRef: { name: 'inner' } } }, waits),
      ensemble('inner', { s: runs('m_served') }, waits),
    ],
    models: [
      model('m', notReady('FetchFailed', 'gone'), { modelName: 'm_served' }),
      model('alone', READY),
    ],
    routers: [ROUTER],
  }
  t.equal(
    causeOf(below),
    'NotReady FetchFailed step "s", Ensemble "inner": step "s", Model "m": gone',
  )
  const names = nodesOf(below).map(({ kind, name }) => `${kind} ${name}`)
  t.same(names, ['Ensemble outer', 'Ensemble inner', 'Model alone', 'Router default'])
  t.match(nodesOf(below, 'm_served'), [{ kind: 'Model', name: 'm' }, { kind: 'Router' }])
  t.same(nodesOf(below, 'x'), [])
  const router = { ...ROUTER, status: notReady('RouterRefused', 'no rights') }
  const bare = { ensembles: [ensemble('e', {}, notReady('NoRouters', 'none'))], routers: [router] }
  t.equal(causeOf(bare), 'NotReady RouterRefused Router "default": no rights')
  t.match(causeOf({ ...bare, routers: [] }), 'NotReady NoRouters none')
  t.end()
})

await t.test('a step may name what is not there, what cannot be read, or itself', (t) => {
  const waits = notReady('NotFound', 'x')
  const wrongName = {
    ensembles: [ensemble('e', { s: runs('m') }, waits)],
    models: [model('m', READY, { modelName: 'other' })],
  }
  t.match(causeOf(wrongName), /NotFound step "s", Model "m": .*Model 'm' is served as 'other'$/)
  t.match(nodesOf(wrongName)[0]?.children, [{ state: 'Missing' }])
  const told = {
    ...READY,
    steps: [
      { name: 's', ready: false, reason: 'X', message: 'Model "m": y' },
      { name: 'u', ready: true },
    ],
  }
  const [node] = nodesOf({
    ensembles: [ensemble('e', { s: runs('m'), u: runs('n'), v: runs('o') }, told)],
    models: undefined,
  })
  t.match(node?.children, [
    { state: 'NotReady', cause: { reason: 'X' } },
    { state: 'Ready' },
    { state: 'Unknown' },
  ])
  const circle = { ensembles: [ensemble('e', { s: { ensembleRef: { name: 'e' } } })] }
  t.match(nodesOf(circle), [{ children: [{ kind: 'Ensemble', name: 'e', children: [] }] }])
  t.end()
})

await t.test('a message stays in its line, short, and without control sequences', (t) => {
  const nodes = nodesOf({
    models: [model('m', notReady('X', `a\n  b\u001b[2J${'c'.repeat(1000)}`))],
  })
  const text = renderNodes(nodes)
  t.match(text, /^Model m {2}NotReady {2} *X: a \| b\\u001b\[2Jc+\.\.\.\n$/)
  t.ok(text.length < 500)
  t.end()
})

await t.test('whatever an operator of another release writes, there is a tree', (t) => {
  const text = fc.constantFrom('a', 'b', 'Ready', 'True', 'False', '')
  const conditions = fc.array(
    fc.record(
      { type: text, status: text, reason: text, message: text },
      { requiredKeys: ['type', 'message', 'reason'] },
    ),
  )
  const status = fc.option(
    fc.record(
      {
        observedGeneration: fc.nat(3),
        conditions,
        readyReplicas: fc.nat(2),
        desiredReplicas: fc.nat(2),
      },
      { requiredKeys: [] },
    ),
    { nil: undefined },
  )
  const step = fc.record(
    { name: text, modelRef: fc.record({ name: text }), ensembleRef: fc.record({ name: text }) },
    { requiredKeys: ['name'] },
  )
  const object = fc.record({
    name: text,
    spec: fc.option(fc.record({ modelName: text, steps: fc.array(step) }, { requiredKeys: [] }), {
      nil: undefined,
    }),
    status,
  })
  const objects = fc.array(
    object.map(({ name, spec, status: is }) => ({
      apiVersion: 'x',
      kind: 'x',
      metadata: meta(name),
      spec,
      status: is,
    })),
  )
  fc.assert(
    fc.property(objects, objects, (ensembles, models) => {
      // As the API server may give them: nothing of their types is certain.
      const nodes = nodesOf({ ensembles, models } as unknown as Partial<NamespaceState>)
      t.equal(renderNodes(nodes).split('\n').length - 1, count(nodes))
      for (const node of nodes) if (!isBroken(node)) t.equal(node.state, 'Ready')
    }),
    { numRuns: 200 },
  )
  t.end()
})

function count(nodes: readonly StatusNode[]): number {
  return nodes.reduce((sum, node) => sum + 1 + count(node.children), 0)
}

await t.test(
  'pods with built-ins stand below the Router, and a step takes its cause from them',
  (t) => {
    const labels = { 'app.kubernetes.io/component': 'step', 'tutti.dev/builtins': 'true' }
    const pulling = pod('builtins', container({ waiting: { reason: 'ErrImagePull' } }), {
      metadata: { labels },
    })
    const message = '0 of 1 pods with built-ins are ready'
    const cause = notReady('PodsNotReady', `not ready: a: ${message}`)
    const told = { name: 'a', ready: false, reason: 'PodsNotReady', message }
    const ensembles = [
      ensemble('pictures', { a: { builtin: { name: 'resize' } } }, { ...cause, steps: [told] }),
    ]
    const nodes = nodesOf({ ensembles, pods: [pulling], routers: [ROUTER] })
    t.match(nodes, [
      {
        kind: 'Ensemble',
        state: 'NotReady',
        cause: {
          reason: 'ErrImagePull',
          message: /^step "a", Built-in "resize": pod "builtins-pod": /,
        },
        children: [
          {
            kind: 'Built-in',
            name: 'resize',
            state: 'NotReady',
            cause: { reason: 'ErrImagePull' },
          },
        ],
      },
      { kind: 'Router', state: 'Ready', children: [{ kind: 'Pod', name: 'builtins-pod' }] },
    ])
    t.end()
  },
)

await t.test(
  'the pod of which the status of its Model speaks says what its start waits for',
  (t) => {
    const since = '2026-11-27T09:59:25Z'
    const start = { pod: 'm-pod', waitsFor: 'Load', message: 'its load: engine python', since }
    const status = { ...notReady('PodsNotReady', 'no pod is ready'), start }
    const pods = [
      pod('m', container({ running: {} }, { started: false })),
      pod('m', container({ running: {} }, { started: false }), { metadata: { name: 'other' } }),
    ]
    const models = [model('m', status)]
    const text = renderNodes(nodesOf({ models, pods }))
    t.match(text, /Pod m-pod .*Starting: it waits for its load: engine python \(35 s\)\n/)
    const probe = 'Startup probe failed: HTTP probe failed with statuscode: 503'
    const events = [event('m', 'Unhealthy', probe, {})]
    const probed = renderNodes(nodesOf({ models, pods, events }))
    t.match(probed, /Pod m-pod .*Starting: it waits for its load: engine python/)
    const silent = [model('m', { ...status, start: { ...start, message: 'its load' } })]
    t.match(renderNodes(nodesOf({ models: silent, pods, events })), /Unhealthy: .*Startup probe/)
    t.match(text, /Pod other .*Starting: container "main" is starting\n/)
    t.match(text, /Model m .*Starting/)
    t.end()
  },
)
