// needs: apiserver, gitops
import { readFile } from 'node:fs/promises'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { parse } from 'yaml'
import {
  createNamespace,
  operatorOf,
  startChartCluster,
  startChartPod,
} from '../chart/chart-pods.ts'
import { type Rendered, render } from '../chart/helm.ts'
import { ROOT, runProgram } from '../serving.ts'

const { TUTTI_GITOPS: GITOPS = '', TUTTI_GITOPS_MISSING } = process.env
const WITH_ALL = { skip: TUTTI_GITOPS_MISSING ?? withoutKube('helm') }

const readYaml = async (name: string): Promise<Rendered> =>
  parse(await readFile(`${ROOT}docs/gitops/${name}`, 'utf8'))

/** Asks Argo CD's script, Flux's expressions and kstatus how an object is. */
async function judge(object: Rendered): Promise<Rendered> {
  const { kind } = object
  const { data } = await readYaml('argocd-cm.yaml')
  const { spec } = await readYaml('flux-kustomization.yaml')
  const expressions = spec.healthCheckExprs.find((one: Rendered) => one['kind'] === kind)
  const script = data[`resource.customizations.health.tutti.dev_${kind}`]
  const input = JSON.stringify({ script, expressions, objects: [object] })
  const { code, out, err } = await runProgram(GITOPS, [], { input })
  if (code !== 0) throw new Error(err)
  const [{ argocd, flux, kstatus }] = JSON.parse(out)
  return { argocd: argocd.status, said: argocd.message, flux, kstatus }
}

/** An object of a kind with these conditions: `Ready=False/NoReplica`. */
function withConditions(kind: string, ...texts: readonly string[]): Rendered {
  const conditions = texts.map((text) => {
    const [type, status, reason] = text.split(/[=/]/)
    return { type, status, reason, message: 'words' }
  })
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind,
    metadata: { name: 'one', generation: 2 },
    status: { observedGeneration: 2, conditions },
  }
}

await t.test('how Argo CD, Flux and kstatus see conditions', WITH_ALL, async (t) => {
  const READY = 'Ready=True/Ready'
  const cases: readonly (readonly [Rendered, string, string, string])[] = [
    [withConditions('Model', READY), 'Healthy', 'Current', 'Current'],
    [withConditions('Ensemble', READY), 'Healthy', 'Current', 'Current'],
    [withConditions('Router', READY), 'Healthy', 'Current', 'Current'],
    [withConditions('Model', READY, 'Degraded=True/ErrImagePull'), 'Healthy', 'Current', 'Current'],
    [
      withConditions('Model', 'Progressing=True/RollingOut', 'Ready=False/NoReplica'),
      'Progressing',
      'InProgress',
      'InProgress',
    ],
    [
      withConditions(
        'Model',
        'Progressing=False/ProgressDeadlineExceeded',
        'Ready=False/OOMKilled',
      ),
      'Degraded',
      'Failed',
      'InProgress',
    ],
    // Old pods answer while new ones do not come up because of a scale-up.
    [
      withConditions('Model', 'Progressing=False/ProgressDeadlineExceeded', READY),
      'Healthy',
      'Current',
      'Current',
    ],
    [
      withConditions('Model', 'SchemaVerified=False/SchemaMismatch', 'Ready=False/SchemaMismatch'),
      'Degraded',
      'Failed',
      'InProgress',
    ],
    [withConditions('Model', 'Ready=False/ScaledToZero'), 'Suspended', 'Current', 'InProgress'],
    [
      withConditions('Ensemble', 'Accepted=False/SchemaPending', 'Ready=False/SchemaPending'),
      'Progressing',
      'InProgress',
      'InProgress',
    ],
    // The Model of the same commit may still have the old shape.
    [
      withConditions('Ensemble', 'Accepted=False/ShapeMismatch', 'Ready=False/NotAccepted'),
      'Degraded',
      'InProgress',
      'InProgress',
    ],
    [
      withConditions('Ensemble', 'Accepted=False/InvalidSpec', 'Ready=False/InvalidSpec'),
      'Degraded',
      'Failed',
      'InProgress',
    ],
    [withConditions('Router', 'Ready=False/NoRouters'), 'Progressing', 'InProgress', 'InProgress'],
  ]
  for (const [object, argocd, flux, kstatus] of cases) {
    const { kind, status } = object
    t.match(await judge(object), { argocd, flux, kstatus }, `${kind} ${JSON.stringify(status)}`)
    const edited = { ...object, metadata: { ...object['metadata'], generation: 3 } }
    const waits = { argocd: 'Progressing', flux: 'InProgress', kstatus: 'InProgress' }
    t.match(await judge(edited), waits, `${kind}: the status is of an earlier generation`)
  }
})

const isSeen = (found: Rendered | undefined): boolean =>
  found?.['status']?.conditions?.some(({ type }: Rendered) => type === 'Ready') === true

const MODEL = { modelFormat: { name: 'onnx' }, storageUri: 'https://storage.example/a.tar' }
const TENSOR = { name: 'x', datatype: 'FP32', shape: [-1] }

await t.test('how they see what a real operator says', WITH_ALL, async (t) => {
  const chart = await render()
  const server = await startChartCluster(t, chart)
  const { plain } = server
  await createNamespace(server, 'vision')
  const api = '/apis/tutti.dev/v1alpha1/namespaces/vision'
  const apply = async (kind: string, name: string, spec: Rendered): Promise<void> => {
    const head = { apiVersion: 'tutti.dev/v1alpha1', kind, metadata: { name, namespace: 'vision' } }
    await plain.apply(`${api}/${kind.toLowerCase()}s/${name}`, { ...head, spec })
  }
  await apply('Model', 'starting', MODEL)
  const fresh = await judge(await plain.get(`${api}/models/starting`))
  const waits = { argocd: 'Progressing', flux: 'InProgress', kstatus: 'InProgress' }
  t.match(fresh, waits, 'the operator has not seen it')

  await startChartPod(t, server, operatorOf(chart))
  await apply('Model', 'refused', { ...MODEL, storageUri: 'hostPath:///models/a' })
  await apply('Ensemble', 'early', {
    inputs: [TENSOR],
    outputs: [{ name: 'y', from: 'one.y' }],
    steps: [{ name: 'one', modelRef: { name: 'starting' }, inputMap: { x: 'x' } }],
  })
  const cases: readonly (readonly [string, string, string, string])[] = [
    ['models/starting', 'Progressing', 'InProgress', 'InProgress'],
    ['models/refused', 'Degraded', 'Failed', 'InProgress'],
    ['ensembles/early', 'Progressing', 'InProgress', 'InProgress'],
    ['routers/default', 'Progressing', 'InProgress', 'InProgress'],
  ]
  for (const [name, argocd, flux, kstatus] of cases) {
    const path = `${api}/${name}`
    const seen = (await plain.until(path, isSeen)) ?? {}
    const judged = await judge(seen)
    t.match(judged, { argocd, flux, kstatus }, name)
    const ready = seen['status'].conditions.find(({ type }: Rendered) => type === 'Ready')
    t.equal(judged['said'], `${ready.reason}: ${ready.message}`, `${name}: the words of Ready`)
  }
})
