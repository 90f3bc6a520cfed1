// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { operatorArgsOf, render, type Values } from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }

async function filesArgs(values: Values): Promise<readonly string[]> {
  const args = operatorArgsOf(await render(values))
  return args.filter((arg) => /^--(?:cache|image-volumes)/.test(arg))
}

await t.test('the operator is told the cache of nodes', WITH_HELM, async (t) => {
  t.same(await filesArgs({}), [])
  t.same(await filesArgs({ 'step.cache.hostPath': '/var/cache/tutti' }), [
    '--cache-host-path=/var/cache/tutti',
    '--cache-max-bytes=107374182400',
  ])
  const cache = { claim: 'model-cache', namespaces: ['vision', 'speech'], maxGiB: 1 }
  t.same(await filesArgs({ step: { imageVolumes: true, cache } }), [
    '--image-volumes=true',
    '--cache-claim=model-cache',
    '--cache-max-bytes=1073741824',
    '--cache-namespace=vision',
    '--cache-namespace=speech',
  ])
})

await t.test('what is no cache is refused', WITH_HELM, async (t) => {
  const cache = { claim: 'model-cache', hostPath: '/var/cache/tutti' }
  await t.rejects(render({ step: { cache } }), /step\.cache: got hostPath and claim, want one/)
  for (const hostPath of ['/', 'var', '/var/../etc', '/a b']) {
    await t.rejects(render({ 'step.cache.hostPath': hostPath }), /at '\/step\/cache\/hostPath'/)
  }
  await t.rejects(render({ 'step.cache.maxGiB': 0 }), /at '\/step\/cache\/maxGiB'/)
})
