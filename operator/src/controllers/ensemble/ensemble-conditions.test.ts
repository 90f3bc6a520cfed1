import { ServeError } from '@tutti/errors'
import type { EnsembleCheck } from '@tutti/graph'
import { normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import * as fc from 'fast-check'
import t from 'tap'
import { conditionsOfEnsemble, type EnsembleState } from './ensemble-conditions.ts'
import { summarizeEnsemble } from './summarize.ts'

const config = normaliseModelConfig(parseModelConfig('name: "e" platform: "ensemble"', 'test'))
const ACCEPTED: EnsembleCheck = {
  accepted: true,
  config,
  graph: { steps: [], outputs: [], maxInFlightPerStep: 0 },
  models: {},
  warnings: [],
}
const REFUSED = { accepted: false, reason: 'UnknownTensor', message: 'steps[0]: no' } as const
const SERVED = { name: 'e-ensemble-1', generation: 1 }
const view = (accepted: readonly string[], exposed?: string[]) => ({
  pod: 'r',
  served: { models: [], accepted: [...accepted], ...(exposed && { exposed }) },
})
const ROUTE = { hosts: ['a.example'], revision: 'r2' }

const state = (o: Partial<EnsembleState> = {}): EnsembleState => ({
  generation: 1,
  isPaused: false,
  checked: ACCEPTED,
  served: SERVED,
  steps: [{ name: 'a', ready: true }],
  routers: [view([SERVED.name])],
  ...o,
})

const CASES: readonly {
  readonly name: string
  readonly state: EnsembleState
  readonly ready: string
}[] = [
  { name: 'all is well', state: state(), ready: 'Ready' },
  { name: 'it is refused', state: state({ checked: REFUSED }), ready: 'UnknownTensor' },
  {
    name: 'what is accepted cannot be stored',
    state: state({ refusal: 'exceeded quota' }),
    ready: 'RevisionRefused',
  },
  {
    name: 'a step is not ready',
    state: state({ steps: [{ name: 'a', ready: false, reason: 'OOMKilled', message: 'x' }] }),
    ready: 'OOMKilled',
  },
  { name: 'no router is ready', state: state({ routers: [] }), ready: 'NoRouters' },
  {
    name: 'the settings of the router are wrong',
    state: state({ trouble: { reason: 'RouterSettingsInvalid', message: 'x' } }),
    ready: 'RouterSettingsInvalid',
  },
  {
    name: 'one of two routers lacks it',
    state: state({ routers: [view([SERVED.name]), view([])] }),
    ready: 'NotRouted',
  },
  {
    name: 'one of two routers does not know its host',
    state: state({
      route: ROUTE,
      routers: [view([SERVED.name], ['r2']), view([SERVED.name], ['r1'])],
    }),
    ready: 'NotRouted',
  },
  {
    name: 'a router has no listeners for outside',
    state: state({ route: ROUTE }),
    ready: 'NotRouted',
  },
  {
    name: 'all routers know its host',
    state: state({ route: ROUTE, routers: [view([SERVED.name], ['r1', 'r2'])] }),
    ready: 'Ready',
  },
  {
    name: 'a router cannot be asked',
    state: state({ routers: [{ pod: 'r', error: new ServeError('INTERNAL', 'gone') }] }),
    ready: 'RouterUnreachable',
  },
  {
    name: 'what was asked for outside is not there',
    state: state({ exposure: { reason: 'GatewayApiMissing', message: 'x' } }),
    ready: 'GatewayApiMissing',
  },
  {
    name: 'no Gateway has taken up its route',
    state: state({ exposure: { reason: 'RoutePending', message: 'x', isAwaited: true } }),
    ready: 'RoutePending',
  },
  { name: 'it is paused', state: state({ isPaused: true, checked: REFUSED }), ready: 'Paused' },
]

for (const { name, state: given, ready } of CASES) {
  await t.test(`Ready says so when ${name}`, async (t) => {
    const states = conditionsOfEnsemble(given)
    t.equal(states.Ready.reason, ready)
    t.equal(states.Ready.status, ready === 'Ready' || ready === 'Paused' ? 'True' : 'False')
  })
}

await t.test('a refusal tells its first problems, and how many there are', async (t) => {
  const others = Array.from({ length: 5 }, (_, i) => ({
    reason: 'UnusedInput' as const,
    message: `inputs[${i}](x${i}): no`,
  }))
  t.match(conditionsOfEnsemble(state({ checked: { ...REFUSED, others } })).Accepted, {
    reason: 'UnknownTensor',
    message:
      'steps[0]: no; also inputs[0](x0): no; also inputs[1](x1): no; also inputs[2](x2): no; and 2 more, which tutti validate lists; routers still serve generation 1 (e-ensemble-1)',
  })
  t.match(
    conditionsOfEnsemble(state({ checked: { ...REFUSED, others: others.slice(0, 1) } })).Accepted,
    { message: /^steps\[0\]: no; also inputs\[0\]\(x0\): no; routers/ },
  )
})

await t.test('a host that a router does not know yet is named', async (t) => {
  const routers = [view([SERVED.name], [])]
  t.match(conditionsOfEnsemble(state({ route: ROUTE, routers })).Ready, {
    message: 'router "r" does not let in requests to a.example as expose says yet',
  })
})

await t.test('what somebody has to change is no progress, and not well', async (t) => {
  const trouble = { reason: 'RouterSettingsInvalid', message: 'data.replicas: x' }
  t.match(conditionsOfEnsemble(state({ trouble })), {
    Degraded: { status: 'True', ...trouble },
    Progressing: { status: 'False', ...trouble },
  })
  const credential = { reason: 'CredentialMissing', message: 'x' }
  t.match(conditionsOfEnsemble(state({ trouble: credential })), {
    Degraded: { status: 'True', ...credential },
    Progressing: { status: 'True' },
  })
  const { served: _, ...fresh } = state({ checked: REFUSED })
  t.match(conditionsOfEnsemble(fresh), {
    Degraded: { status: 'True', reason: REFUSED.reason, message: REFUSED.message },
    Progressing: { status: 'False' },
  })
  const waits = { accepted: false, reason: 'SchemaPending', message: 'x' } as const
  t.match(conditionsOfEnsemble({ ...fresh, checked: waits }), {
    Degraded: { status: 'False' },
    Progressing: { status: 'True' },
  })
  const exposure = { reason: 'RoutePending', message: 'x', isAwaited: true }
  t.match(conditionsOfEnsemble(state({ exposure })), {
    Degraded: { status: 'False', message: /other conditions say what it waits for/ },
    Progressing: { status: 'True', message: 'x' },
  })
})

await t.test('no condition is well that another one denies', async (t) => {
  const missing = { name: 'a', ready: false, reason: 'ModelNotFound', message: 'x' }
  const wanted = [
    [{}, 'nothing is wrong'],
    [{ isPaused: true }, 'nothing is wrong'],
    [{ steps: [missing] }, /^nothing is wrong with the Ensemble itself; other conditions say/],
    [{ routers: [] }, /^nothing is wrong with the Ensemble itself; other conditions say/],
  ] as const
  for (const [o, message] of wanted) {
    t.match(conditionsOfEnsemble(state(o)).Degraded, {
      status: 'False',
      reason: 'AsExpected',
      message,
    })
  }
})

await t.test('what is being deleted is told, and is not wrong if it goes by itself', async (t) => {
  const held = { reason: 'Terminating', message: 'held', isPassing: false }
  const passing = { reason: 'Terminating', message: 'goes', isPassing: true }
  t.match(conditionsOfEnsemble(state({ trouble: held })), {
    RouterReady: { status: 'False', reason: 'Terminating', message: 'held' },
    Degraded: { status: 'True', reason: 'Terminating' },
    Progressing: { status: 'False', reason: 'Terminating' },
  })
  t.match(conditionsOfEnsemble(state({ trouble: passing })), {
    RouterReady: { status: 'False', reason: 'Terminating', message: 'goes' },
    Degraded: { status: 'False' },
    Progressing: { status: 'True', reason: 'Terminating' },
    Ready: { status: 'False', reason: 'Terminating' },
  })
  t.match(conditionsOfEnsemble(state({ exposure: held })), {
    Degraded: { status: 'True', reason: 'Terminating' },
    Ready: { status: 'False', reason: 'Terminating' },
  })
  t.match(conditionsOfEnsemble(state({ exposure: passing })), {
    Degraded: { status: 'False' },
    Progressing: { status: 'True', reason: 'Terminating', message: 'goes' },
    Ready: { status: 'True' },
  })
  t.match(conditionsOfEnsemble(state({ trouble: passing, exposure: held })).Degraded, {
    message: 'held',
  })
})

await t.test('routers go on while those that are to take their place do not come', async (t) => {
  const trouble = { reason: 'ErrImageNeverPull', message: 'pod "b": no image', isServed: true }
  t.match(conditionsOfEnsemble(state({ trouble })), {
    RouterReady: { status: 'True', reason: 'Ready' },
    Degraded: {
      status: 'True',
      reason: trouble.reason,
      message: 'pod "b": no image; the routers that are ready still serve',
    },
    Progressing: { status: 'True', reason: trouble.reason, message: trouble.message },
    Ready: { status: 'True', reason: 'Ready' },
  })
  t.match(conditionsOfEnsemble(state({ trouble, routers: [] })), {
    RouterReady: { status: 'False', reason: trouble.reason, message: trouble.message },
    Degraded: { status: 'True', message: trouble.message },
    Ready: { status: 'False', reason: trouble.reason },
  })
  const exposure = { reason: 'TokenMissing', message: 'x' }
  t.match(conditionsOfEnsemble(state({ trouble, exposure })), {
    Degraded: { status: 'True', reason: 'TokenMissing' },
    Ready: { status: 'False', reason: 'TokenMissing' },
  })
})

await t.test('Ready means routable, whatever else is the case', async () => {
  const flag = fc.boolean()
  const given = fc.record({
    isPaused: flag,
    checked: fc.constantFrom(ACCEPTED, REFUSED),
    hasServed: flag,
    isStepReady: flag,
    routers: fc.array(flag, { maxLength: 3 }),
  })
  fc.assert(
    fc.property(given, ({ hasServed, isStepReady, routers, ...o }) => {
      const { served: _, ...rest } = state({
        ...o,
        steps: [{ name: 'a', ready: isStepReady }],
        routers: routers.map((has) => view(has ? [SERVED.name] : [])),
      })
      const { Ready: ready } = conditionsOfEnsemble(hasServed ? { ...rest, served: SERVED } : rest)
      const isRoutable = hasServed && routers.length > 0 && routers.every(Boolean)
      const wanted = isRoutable && isStepReady && (o.isPaused || o.checked.accepted)
      return (ready.status === 'True') === wanted
    }),
  )
})

await t.test('a status that nothing has happened to stays the same', async (t) => {
  const summary = (before: ReturnType<typeof summarizeEnsemble> | undefined, at: string) =>
    summarizeEnsemble({
      state: state(),
      modelName: 'e',
      revisions: [SERVED],
      signature: undefined,
      urls: { url: 'http://x', grpcUrl: 'x:1' },
      before,
      at,
    })
  const first = summary(undefined, '2026-01-01T00:00:00Z')
  t.same(summary(first, '2026-01-02T00:00:00Z'), first)
  t.match(first, { stepsReady: '1/1', revision: SERVED.name, observedGeneration: 1 })
})
