// needs: apiserver
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { findKubeBinaries, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import {
  createNamespace,
  operatorOf,
  startChartCluster,
  startChartPod,
} from '../chart/chart-pods.ts'
import { forEach, type Rendered, render } from '../chart/helm.ts'
import { type Ended, ROOT, runProgram } from '../serving.ts'

const WITH_KUBE = { skip: withoutKube('helm', 'kubectl') }

const EXAMPLES = readdirSync(`${ROOT}examples`, { withFileTypes: true }).flatMap((entry) => {
  const files = entry.isDirectory() ? readdirSync(`${ROOT}examples/${entry.name}`) : []
  return files.includes('manifest.yaml') ? [entry.name] : []
})
const specsOf = (objects: readonly Rendered[]) =>
  objects.map(({ metadata: { name, generation }, spec }) => ({ name, generation, spec }))

const isSeen = ({ metadata, status }: Rendered): boolean =>
  status?.observedGeneration === metadata.generation

const KINDS = ['models', 'ensembles', 'routers']

await t.test('what is applied stays as it was applied', WITH_KUBE, async (t) => {
  const chart = await render()
  const server = await startChartCluster(t, chart)
  const { plain } = server
  const kubeconfig = `--kubeconfig=${await server.kubeconfig()}`
  await startChartPod(t, server, operatorOf(chart))
  const kubectl = (namespace: string, ...args: readonly string[]): Promise<Ended> =>
    runProgram(join(findKubeBinaries() ?? '', 'kubectl'), [
      kubeconfig,
      `--namespace=${namespace}`,
      ...args,
    ])
  /** Everything that the file made, and the Router that the operator adds, once it has looked at them. */
  const objectsIn = async (namespace: string): Promise<readonly Rendered[]> => {
    const lists = KINDS.map(async (kind) => {
      const path = `/apis/tutti.dev/v1alpha1/namespaces/${namespace}/${kind}?limit=500`
      await plain.untilList(path, (found) => {
        const isThere = kind !== 'routers' || found.length === 1
        return isThere && found.every(isSeen)
      })
      return await plain.list(path)
    })
    return (await Promise.all(lists)).flat()
  }
  t.ok(EXAMPLES.length > 5)
  const cases = EXAMPLES.flatMap((example) => [
    { example, way: 'client', flags: [] },
    { example, way: 'server', flags: ['--server-side', '--field-manager=gitops'] },
  ])
  await forEach(cases, async ({ example, way, flags }) => {
    const namespace = `${example}-${way}`
    const file = `--filename=${ROOT}examples/${example}/manifest.yaml`
    await createNamespace(server, namespace)
    const first = await kubectl(namespace, 'apply', ...flags, file)
    t.equal(first.code, 0, `${namespace}: ${first.err}`)
    const before = specsOf(await objectsIn(namespace))
    t.ok(before.length > 1, namespace)
    const again = await kubectl(namespace, 'apply', ...flags, file)
    t.equal(again.code, 0, `${namespace}: ${again.err}`)
    if (way === 'client') t.notMatch(again.out, /created|configured/, namespace)
    t.same(specsOf(await objectsIn(namespace)), before, `${namespace}: no field moves`)
    // Executes docs/gitops.md: kubectl --namespace vision diff
    const diff = await kubectl(namespace, 'diff', ...flags, file)
    t.match(diff, { code: 0, out: '' }, `${namespace}: ${diff.out}${diff.err}`)
  })

  await t.test('an edit by hand is seen', async (t) => {
    const namespace = `${EXAMPLES[0]}-client`
    const models = `/apis/tutti.dev/v1alpha1/namespaces/${namespace}/models`
    const [{ metadata } = { metadata: {} }] = await plain.list(models)
    await plain.patch(`${models}/${metadata.name}`, { spec: { storageUri: 'pvc://elsewhere' } })
    const file = `--filename=${ROOT}examples/${EXAMPLES[0]}/manifest.yaml`
    t.match(await kubectl(namespace, 'diff', file), { code: 1, out: /pvc:\/\/elsewhere/ })
  })
})
