// needs: apiserver, kube-score
import { readFile } from 'node:fs/promises'
import { type ApiServer, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { ROOT, runProgram } from '../serving.ts'
import { createNamespace, operatorOf, startChartCluster, startChartPod } from './chart-pods.ts'
import { PRODUCTION, type Rendered, render } from './helm.ts'

const { TUTTI_KUBE_SCORE: KUBE_SCORE = '', TUTTI_KUBE_SCORE_MISSING } = process.env
const WITH_ALL = { skip: TUTTI_KUBE_SCORE_MISSING ?? withoutKube('helm') }

/** Checks that are not among those that kube-score makes by itself. */
const FURTHER = ['container-seccomp-profile', 'container-ports-check']
const COMPONENT = 'app.kubernetes.io/component'
/** The lowest grade of a check with nothing to say. */
const GOOD = 10

/** A check that something failed, and the component that it belongs to. */
interface Finding {
  readonly check: string
  readonly component: string
  readonly words: string
}

/** Asks kube-score about objects, all at once because some checks look for others. */
async function findingsIn(objects: readonly Rendered[]): Promise<readonly Finding[]> {
  const input = objects.map((object) => stringify(object)).join('---\n')
  const flags = ['--output-format=json', '--kubernetes-version=v1.31']
  const further = FURTHER.map((name) => `--enable-optional-test=${name}`)
  const { out, err } = await runProgram(KUBE_SCORE, ['score', ...flags, ...further, '-'], { input })
  if (!out.startsWith('[')) throw new Error(`${out}${err}`)
  const judged: readonly Rendered[] = JSON.parse(out)
  return judged.flatMap(({ object_name: name, object_meta: { labels }, checks }) =>
    checks
      .filter(({ grade, skipped }: Rendered) => !skipped && grade < GOOD)
      .map(({ check, comments }: Rendered): Finding => {
        const words = comments?.map(({ path, summary }: Rendered) => `${path} ${summary}`).join()
        return { check: check.id, component: labels[COMPONENT], words: `${name}: ${words}` }
      }),
  )
}

/** The rows of the decision: a check, and the components that are excused from it. */
async function readExcuses(): Promise<ReadonlyMap<string, readonly string[]>> {
  const page = await readFile(`${ROOT}docs/decisions/kube-score.md`, 'utf8')
  const rows = [...page.matchAll(/^\| `([a-z-]+)` +\| ([a-z, -]+?) +\|/gm)]
  return new Map(rows.map(([, check = '', components = '']) => [check, components.split(', ')]))
}

const MODEL = { modelFormat: { name: 'onnx' }, storageUri: 'https://storage.example/a.tar' }
const METRIC = {
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } },
}
const headOf = (kind: string, name: string) => ({
  apiVersion: 'tutti.dev/v1alpha1',
  kind,
  metadata: { namespace: 'vision', name },
})

/** A Model of each way to scale, and an Ensemble with a built-in step that is exposed. */
const MANIFESTS: readonly Rendered[] = [
  { ...headOf('Model', 'one'), spec: MODEL },
  { ...headOf('Model', 'native'), spec: { ...MODEL, scaling: { minReplicas: 2, maxReplicas: 4 } } },
  {
    ...headOf('Model', 'hpa'),
    spec: {
      ...MODEL,
      scaling: { provider: 'HPA', minReplicas: 2, maxReplicas: 4, metrics: [METRIC] },
    },
  },
  {
    ...headOf('Ensemble', 'pictures'),
    spec: {
      inputs: [{ name: 'x', datatype: 'FP32', shape: [-1] }],
      outputs: [{ name: 'y', from: 'one.y' }],
      steps: [
        { name: 'batch', builtin: { name: 'expandDims' }, inputMap: { input: 'x' } },
        { name: 'one', modelRef: { name: 'one' }, inputMap: { x: 'batch.output' } },
      ],
      expose: { ingress: { className: 'traefik', hosts: ['pictures.example.com'] } },
    },
  },
]

/** Kinds that the operator makes, and kube-score has checks for. */
const MADE = {
  '/api/v1/namespaces/vision/services': ['v1', 'Service'],
  '/apis/apps/v1/namespaces/vision/deployments': ['apps/v1', 'Deployment'],
  '/apis/autoscaling/v2/namespaces/vision/horizontalpodautoscalers': [
    'autoscaling/v2',
    'HorizontalPodAutoscaler',
  ],
  '/apis/networking.k8s.io/v1/namespaces/vision/ingresses': ['networking.k8s.io/v1', 'Ingress'],
  '/apis/networking.k8s.io/v1/namespaces/vision/networkpolicies': [
    'networking.k8s.io/v1',
    'NetworkPolicy',
  ],
  '/apis/policy/v1/namespaces/vision/poddisruptionbudgets': ['policy/v1', 'PodDisruptionBudget'],
} as const

/** Returns what the operator of the chart makes on a real API server. */
async function made(t: Test, chart: readonly Rendered[]): Promise<readonly Rendered[]> {
  const server = await startChartCluster(t, chart)
  const { plain } = server
  await createNamespace(server, 'vision')
  for (const manifest of MANIFESTS) {
    const { kind, metadata } = manifest
    const plural = `${kind.toLowerCase()}s`
    await plain.apply(
      `/apis/tutti.dev/v1alpha1/namespaces/vision/${plural}/${metadata.name}`,
      manifest,
    )
  }
  await startChartPod(t, server, operatorOf(chart))
  await untilMade(server)
  const lists = Object.entries(MADE).map(async ([path, [apiVersion, kind]]) =>
    (await plain.list(path)).map((object) => ({ ...object, apiVersion, kind })),
  )
  return (await Promise.all(lists)).flat()
}

const isThere = (found: unknown): boolean => found !== undefined

async function untilMade({ plain }: ApiServer): Promise<void> {
  const deployments = ['one-step', 'native-step', 'hpa-step', 'tutti-builtins', 'tutti-router']
  for (const name of deployments) {
    await plain.until(`/apis/apps/v1/namespaces/vision/deployments/${name}`, isThere)
  }
  const [, , autoscalers = '', ingresses = ''] = Object.keys(MADE)
  await plain.until(`${autoscalers}/hpa-step`, isThere)
  await plain.untilList(ingresses, (found) => found.length > 0)
}

await t.test('kube-score finds nothing but what is decided', WITH_ALL, async (t) => {
  const [byDefault, forProduction] = await Promise.all([
    render(),
    render({}, `--values=${PRODUCTION}`),
  ])
  const found = [
    ...(await findingsIn(byDefault)),
    ...(await findingsIn(forProduction)),
    ...(await findingsIn(await made(t, byDefault))),
  ]
  const excuses = await readExcuses()
  t.ok(excuses.size > 3, 'the page has rows')
  for (const { check, component, words } of found) {
    t.ok(excuses.get(check)?.includes(component), `${check} of ${component}: ${words}`)
  }
  for (const [check, components] of excuses) {
    for (const component of components) {
      const isUsed = found.some((one) => one.check === check && one.component === component)
      t.ok(isUsed, `${check} of ${component} is still found`)
    }
  }
})

await t.test('it does find what is wrong', WITH_ALL, async (t) => {
  const values = { 'nats.securityContext.readOnlyRootFilesystem': false }
  const found = await findingsIn(await render(values))
  t.match(
    found.filter(({ check }) => check === 'container-security-context-readonlyrootfilesystem'),
    [{ component: 'nats' }],
  )
})
