import type { Pod, Stored } from '@tutti/kube'
import { chooseRouter } from '@tutti/kubectl'
import { routerPod, runKubectlCommand, startListServer } from '@tutti/kubectl/testing'
import t from 'tap'
import { ECHO_CHAIN, echo, serveEcho } from './testing/echo-server.ts'

const NUMBERS = echo('FP32', [3], 'max_batch_size: 8')
const INPUT = '-i=x=[1,2,3]'
const READY = routerPod('tutti-router-b', 'True', [{ name: 'grpc', containerPort: 7001 }])
const PODS = [routerPod('tutti-router-a', 'False'), READY]

const pods = (...list: readonly object[]) => ({ items: { pods: list } })

function pod(name: string, status: 'True' | 'False', metadata: object = {}): Stored<Pod> {
  const made: Stored<Pod> = JSON.parse(JSON.stringify(routerPod(name, status)))
  return { ...made, metadata: { ...made.metadata, ...metadata } }
}

const choose = (...from: readonly Stored<Pod>[]) => chooseRouter(from, 'shop')

await t.test('kubectl tutti trace asks a ready pod of the router', async (t) => {
  const { grpc } = await serveEcho(t, { numbers: NUMBERS, ens: ECHO_CHAIN })
  const ports = { 7001: Number(new URL(grpc).port) }
  const kubeconfig = `--kubeconfig=${await startListServer(t, { ...pods(...PODS), ports })}`
  const env = { TUTTI_TOKEN: 'of another server' }
  const trace = (...argv: readonly string[]) =>
    runKubectlCommand(['trace', ...argv, kubeconfig], { env })

  const { code, out, err } = await trace('ens', INPUT)
  t.equal(code, 0, err)
  t.match(out, /^ens, version 1: .*\ncritical path: numbers#0 -> numbers#1$/ms)
  const json = await trace('ensemble/ens', INPUT, '-o', 'json')
  t.match(JSON.parse(json.out), { model: 'ens', criticalPath: ['numbers#0', 'numbers#1'] })

  t.match(await trace('slow', INPUT), {
    code: 1,
    out: '',
    err: /: pod tutti-router-b does not serve Model slow: .*'slow'.*; kubectl tutti status says why\n/,
  })
  const versioned = await trace('ens', INPUT, '--model-version=7')
  t.match(versioned, { code: 1, out: '', err: /'ens'.*version/ })
  t.notMatch(versioned.err, /does not serve/)
  t.match(await trace('router', INPUT), {
    code: 2,
    err: /got the router, want an Ensemble or a Model/,
  })
  t.match(await trace('ens', '-i=z=1'), { code: 2, err: /--input: the model has no 'z'/ })
  t.match(await trace('ens', '--token-file=x'), { code: 2, err: /unknown flag --token-file/ })
  t.match(await trace(), { code: 2, err: /got 0 names, want one/ })
})

await t.test('kubectl tutti trace says what is in its way', async (t) => {
  const trace = async (o: Parameters<typeof startListServer>[1]) => {
    const kubeconfig = `--kubeconfig=${await startListServer(t, o)}`
    return await runKubectlCommand(['trace', 'ens', INPUT, kubeconfig])
  }
  const none = /: there is no pod of a router in namespace default; kubectl tutti status says why\n/
  t.match(await trace(pods()), { code: 1, err: none })
  t.match(await trace({}), { code: 1, err: /^kubectl tutti trace: forbidden\n$/ })
  t.match(await trace(pods(READY)), {
    code: 1,
    err: /: forbidden; kubectl tutti trace needs the rights to get and create pods\/portforward in namespace default\n$/,
  })
  t.match(await trace({ ...pods(READY), ports: {} }), {
    code: 1,
    err: /: the way to pod tutti-router-b: port 7001: connection refused\n/,
  })
})

await t.test('a pod that is not ready, or is being deleted, is not asked', (t) => {
  const leaving = pod('a', 'True', { deletionTimestamp: '2026-11-27T10:00:00Z' })
  const step = pod('b', 'True', { labels: { 'app.kubernetes.io/component': 'step' } })
  t.same(choose(leaving, step, pod('c', 'True')), { pod: 'c', port: 8001 })
  t.throws(() => choose(step), { message: /there is no pod of a router in namespace shop/ })
  t.throws(() => choose(leaving), { message: /none of 1 pod of the router is ready/ })
  t.throws(() => choose(leaving, pod('d', 'False')), { message: /none of 2 pods of the router/ })
  t.end()
})
