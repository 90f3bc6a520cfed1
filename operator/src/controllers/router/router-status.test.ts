import { ServeError } from '@tutti/errors'
import t from 'tap'
import { modelDeployment, modelPod } from '../../testing/model-world.ts'
import { builtinsOf, hasOtherBuiltins } from './builtins-told.ts'
import {
  type BuiltinsState,
  conditionsOfRouter,
  type RouterState,
  summarizeRouter,
} from './router-status.ts'
import { hasOtherTrouble, type RouterTrouble, troubleOf } from './router-trouble.ts'

const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } as const
const pod = (name: string, isReady = true) =>
  modelPod(name, { status: isReady ? ready : { phase: 'Pending' } }).pod

function state(o: Partial<RouterState> = {}): RouterState {
  const status = { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2 }
  const deployment = { ...modelDeployment({ status }) }
  return {
    generation: 3,
    trouble: undefined,
    deployment: { ...deployment, spec: { ...deployment.spec, replicas: 2 } },
    hasServices: true,
    pods: [pod('b'), pod('a')],
    views: [],
    ...o,
  }
}

function wanted(replicas: number) {
  const deployment = modelDeployment()
  return { ...deployment, spec: { ...deployment.spec, replicas } }
}

const AT = '2026-01-01T00:00:00Z'

function told(trouble: RouterTrouble | undefined, o: Partial<RouterState> = {}) {
  const status = summarizeRouter(state({ trouble, ...o }), { before: undefined, at: AT })
  return { apiVersion: '', kind: 'Router', metadata: { name: 'default' }, spec: {}, status }
}

await t.test('a Router of which all pods are ready is complete', async (t) => {
  t.match(conditionsOfRouter(state()), {
    Ready: { status: 'True', reason: 'Ready', message: '2 router pods are ready' },
    Degraded: { status: 'False', reason: 'AsExpected' },
    Progressing: { status: 'False', reason: 'Complete' },
  })
})

await t.test('one without pods is not, and one whose pods come is progressing', async (t) => {
  t.match(conditionsOfRouter(state({ deployment: undefined, pods: [] })), {
    Ready: { status: 'False', reason: 'NoRouters' },
    Progressing: { status: 'True', reason: 'RollingOut' },
  })
  const { deployment } = state()
  const more = deployment && { ...deployment, status: { ...deployment.status, replicas: 3 } }
  t.match(conditionsOfRouter(state({ deployment: more })).Progressing, { reason: 'RollingOut' })
})

await t.test('pods with built-ins have a condition of their own', async (t) => {
  const builtins = (o: Partial<BuiltinsState> = {}) =>
    state({
      builtins: {
        deployment: wanted(2),
        pods: [pod('x'), pod('y', false)],
        fewest: 1,
        trouble: undefined,
        ...o,
      },
    })
  const failed = { reason: 'ErrImagePull', message: 'no such image' }
  const cases: readonly (readonly [RouterState, string])[] = [
    [state(), 'True/NotNeeded'],
    // Scaled up by their load, they do not all need to be there.
    [builtins(), 'True/Ready'],
    [builtins({ fewest: 2 }), 'False/PodsNotReady'],
    [builtins({ fewest: 2, trouble: failed }), 'False/ErrImagePull'],
    [builtins({ trouble: failed }), 'True/Ready'],
    [builtins({ fewest: 0, pods: [pod('x', false)] }), 'False/PodsNotReady'],
    [builtins({ deployment: wanted(0) }), 'False/ScaledToZero'],
    [builtins({ deployment: undefined }), 'False/Pending'],
    [
      {
        ...builtins({ deployment: undefined }),
        trouble: { reason: 'CredentialMissing', message: '' },
      },
      'False/CredentialMissing',
    ],
  ]
  for (const [given, text] of cases) {
    const { BuiltinsReady, Ready } = conditionsOfRouter(given)
    t.equal(`${BuiltinsReady.status}/${BuiltinsReady.reason}`, text)
    t.equal(Ready.status, 'True', 'requests without built-ins are answered')
  }
  t.match(conditionsOfRouter(builtins()).Degraded, { status: 'False', reason: 'AsExpected' })
  const degraded = told(undefined, builtins({ trouble: failed }))
  t.match(degraded.status.conditions?.[1], {
    type: 'Degraded',
    status: 'True',
    reason: 'BuiltinsDegraded',
    message: 'ErrImagePull: no such image',
  })
  t.equal(troubleOf(degraded), undefined, 'Ensembles without built-ins are as they were')
  t.notOk('builtins' in told(undefined).status)
  t.same(told(undefined, builtins()).status.builtins, {
    podsReady: '1/2',
    replicas: 2,
    readyReplicas: 1,
  })
})

await t.test('a step reads from the status whether built-ins answer', async (t) => {
  const of = (o: Partial<BuiltinsState>) => {
    const given = { deployment: modelDeployment(), pods: [], fewest: 1, trouble: undefined, ...o }
    return told(undefined, { builtins: given })
  }
  const late = {
    ready: false,
    reason: 'Pending',
    message: 'the pods with built-ins are not there yet',
  }
  t.same(builtinsOf(undefined), late)
  t.same(builtinsOf(told(undefined)), late, 'the Router does not know yet that they are needed')
  const trouble = { reason: 'ErrImagePull', message: 'no such image' }
  t.same(builtinsOf(of({ trouble })), { ready: false, replicas: 0, ...trouble })
  t.same(builtinsOf(of({ trouble, pods: [pod('a')] })), { ready: true, replicas: 1 })
  t.ok(hasOtherBuiltins(of({ trouble }), of({})))
  t.notOk(hasOtherBuiltins(of({ trouble }), of({ trouble })))
})

await t.test('numbers of an earlier spec do not count', async (t) => {
  const { deployment } = state()
  const next = deployment && { ...deployment, metadata: { ...deployment.metadata, generation: 2 } }
  for (const later of [{ deployment: next }, { replicas: 3 }, { replicas: 1 }]) {
    t.match(conditionsOfRouter(state(later)).Progressing, { status: 'True', reason: 'RollingOut' })
  }
  t.match(conditionsOfRouter(state({ replicas: 2 })).Progressing, { reason: 'Complete' })
})

await t.test('Models and Ensembles read from the status what trouble there is', async (t) => {
  const cases: readonly (RouterTrouble | undefined)[] = [
    undefined,
    { reason: 'RouterConflict', message: 'x' },
    { reason: 'Terminating', message: 'x', isPassing: true },
  ]
  for (const trouble of cases) t.same(troubleOf(told(trouble, { pods: [] })), trouble)
  t.same(troubleOf(told(cases[1])), { ...cases[1], isServed: true })
  t.same(troubleOf(told(cases[1], { hasServices: false })), cases[1])
  t.same(troubleOf(told(cases[2])), undefined, 'it ends by itself, and pods answer')
  t.equal(troubleOf(undefined), undefined)
  t.ok(hasOtherTrouble(told(cases[1]), told(cases[1], { pods: [] })))
  t.notOk(hasOtherTrouble(told(cases[1]), told(cases[1])))
})

await t.test(
  'the status has the pods by name, and the revisions that they serve if they are few',
  async (t) => {
    const many = Array.from({ length: 65 }, (_, at) => `r${at}`)
    const error = new ServeError('MESSAGE_TOO_LARGE', 'pod "c" is silent')
    const views = [
      { pod: 'a', served: { models: [], accepted: ['y', 'x'] } },
      { pod: 'b', served: { models: [], accepted: many } },
      { pod: 'c', error },
    ]
    const pods = [pod('d', false), pod('c'), pod('b'), pod('a')]
    const status = summarizeRouter(state({ pods, views }), { before: undefined, at: AT })
    t.match(status, { observedGeneration: 3, podsReady: '3/2', replicas: 4, readyReplicas: 3 })
    t.same(status.pods, [
      { name: 'a', ready: true, revisions: 2, served: ['x', 'y'] },
      { name: 'b', ready: true, revisions: 65 },
      { name: 'c', ready: true, message: 'pod "c" is silent' },
      { name: 'd', ready: false },
    ])
  },
)
