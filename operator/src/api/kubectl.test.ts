// needs: apiserver
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { findKubeBinaries, type PlainObject, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { startCaseServer } from '../testing/prepare-server.ts'

const skip = withoutKube('kubectl')

type Said = { readonly code: number; readonly out: string; readonly err: string }

/** Runs kubectl itself. @param input - for `-f -`. */
function kubectlWith(kubeconfig: string) {
  const program = join(findKubeBinaries() ?? '', 'kubectl')
  return (args: readonly string[], input: object = {}): Promise<Said> =>
    new Promise((settle) => {
      const argv = [`--kubeconfig=${kubeconfig}`, ...args]
      const child = execFile(program, argv, (error, out, err) => {
        const code = typeof error?.code === 'number' ? error.code : 1
        settle({ code: error === null ? 0 : code, out, err })
      })
      child.stdin?.end(JSON.stringify(input))
    })
}

const manifestOf = (kind: string, name: string, spec: object) => ({
  apiVersion: 'tutti.dev/v1alpha1',
  kind,
  metadata: { name, namespace: 'default' },
  spec,
})

const model = (name: string, spec: object = {}) =>
  manifestOf('Model', name, {
    modelFormat: { name: 'onnx' },
    storageUri: 'pvc://models/yolo',
    ...spec,
  })

await t.test('what kubectl does with our kinds', { skip }, async (t) => {
  const server = await startCaseServer(t, {})
  const { plain } = server
  const kubectl = kubectlWith(await server.kubeconfig())
  const apply = (manifest: object, ...args: readonly string[]) =>
    kubectl(['apply', '-f', '-', ...args], manifest)
  const get = async (...args: readonly string[]) => (await kubectl(['get', ...args])).out
  const scale = (replicas: number) =>
    kubectl(['scale', 'routers.tutti.dev', 'default', `--replicas=${replicas}`])
  const target = { type: 'AverageValue', averageValue: 0.5 }
  const metrics = [{ type: 'Pods', pods: { metric: { name: 'queued' }, target } }]

  await t.test('applied again, nothing differs, whoever scaled meanwhile', async (t) => {
    const cases: readonly (readonly [name: string, spec: object])[] = [
      ['plain', {}],
      ['native', { scaling: { maxReplicas: 3 } }],
      ['hpa', { scaling: { provider: 'HPA', maxReplicas: 3, metrics } }],
      ['none', { scaling: { provider: 'None' } }],
      ['amounts', { resources: { requests: { cpu: 0.5 }, limits: { memory: 4_294_967_296 } } }],
      [
        'patches',
        { podTemplate: { spec: { securityContext: { $patch: 'replace', runAsUser: 1 } } } },
      ],
    ]
    for (const [name, spec] of cases) {
      for (const ways of [[], ['--server-side']]) {
        const manifest = model(`${name}-${ways.length}`, spec)
        const title = `${name} ${ways.join('')}`
        t.match(await apply(manifest, ...ways), { code: 0, err: '' }, title)
        const path = `/apis/tutti.dev/v1alpha1/namespaces/default/models/${name}-${ways.length}`
        t.equal((await plain.get(`${path}/scale`))['spec'].replicas, 1, title)
        const scaled = await plain.send('PATCH', `${path}/scale`, {
          body: { spec: { replicas: 3 } },
        })
        t.equal(scaled.status, name === 'none' ? 200 : 422, title)
        if (name !== 'none') t.match(scaled.body['message'], /which decides on replicas itself/)
        const { generation } = (await plain.get(path))['metadata']
        const diff = await kubectl(['diff', '-f', '-', ...ways], manifest)
        t.same(diff, { code: 0, out: '', err: '' }, title)
        t.match(await apply(manifest, ...ways), { code: 0 }, title)
        const { metadata, spec: stored } = await plain.get(path)
        t.equal(metadata.generation, generation, title)
        if (name === 'none') t.equal(stored.scaling.replicas, 3, title)
      }
    }
  })

  await t.test('kubectl scale sets the replicas of a Router that nobody else scales', async (t) => {
    const path = '/apis/tutti.dev/v1alpha1/namespaces/default/routers/default'
    const write = async (spec: object) =>
      t.match(await apply(manifestOf('Router', 'default', spec)), { code: 0 })
    await write({})
    // An autoscaler reads the number before it writes one.
    t.match((await plain.send('GET', `${path}/scale`, {})).body['message'], /scaling\.replicas/)
    t.match(await scale(3), { code: 0, err: '' })
    t.same((await plain.get(path))['spec'], { scaling: { replicas: 3 } })
    await plain.patch(`${path}/status`, {
      status: { replicas: 2, selector: 'app.kubernetes.io/component=router' },
    })
    t.match(await plain.get(`${path}/scale`), {
      spec: { replicas: 3 },
      status: { replicas: 2, selector: 'app.kubernetes.io/component=router' },
    })
    t.match(await scale(0), { code: 1, err: /got 0, want at least 1: without a router/ })
    t.match(await scale(101), { code: 1, err: /less than or equal to 100/ })
    await plain.patch(path, { spec: { scaling: { replicas: null, maxReplicas: 4 } } })
    t.match(await scale(3), { code: 1, err: /HPA, which decides on replicas itself: want minRep/ })
    await plain.delete(path)
  })

  await t.test('what is refused is said in words', async (t) => {
    const refusals: readonly (readonly [manifest: object, says: RegExp])[] = [
      [
        model('a', { timeouts: { drain: '5 s' } }),
        /spec\.timeouts\.drain: Invalid value: "string": got '5 s', want a duration above 0, e\.g\. 500ms, 2s or 1m30s$/m,
      ],
      [model('a', { timeouts: { load: '0s' } }), /got '0s', want a duration above 0/],
      [
        model('a', { batching: { maxQueueDelay: '5' } }),
        /got '5', want 'auto', or a duration above 0, e\.g\. 100us, 5ms or 1s/,
      ],
      [
        manifestOf('Router', 'default', { timeouts: { drain: 'soon' } }),
        /^\* spec\.timeouts\.drain: .* got 'soon', want a duration above 0, .*$|got 'soon', want a duration above 0/m,
      ],
      [
        manifestOf('Router', 'default', { timeouts: { drain: '500ms' } }),
        /got 500ms, want 1s to 24h/,
      ],
      [
        manifestOf('Router', 'default', { scaling: { provider: 'Native' } }),
        /spec\.scaling\.provider: .* got Native, want HPA or None: Native counts requests/,
      ],
      [
        manifestOf('Router', 'default', { scaling: { target: 3 } }),
        /spec\.scaling\.target: .* want no target: it counts requests/,
      ],
      [model('a', { scaling: { replicas: 2 } }), /which decides on replicas itself: want minRep/],
      [model('a', { resources: { limits: { cpu: true } } }), /spec\.resources\.limits\.cpu/],
      [model('a', { resources: { limits: { cpu: [] } } }), /spec\.resources\.limits\.cpu/],
      [model('a', { resources: { limits: { cpu: {} } } }), /spec\.resources\.limits\.cpu/],
      [manifestOf('Router', 'default', { maxInFlightBytes: 0 }), /spec\.maxInFlightBytes/],
      [model('a', { maxBatchSise: 8 }), /unknown field "spec\.maxBatchSise"/],
    ]
    for (const [manifest, says] of refusals) {
      const { code, err } = await apply(manifest)
      t.equal(code, 1, JSON.stringify(manifest))
      t.match(err, says)
      t.notMatch(err, /should match/, 'no pattern')
    }
    const bytes = manifestOf('Router', 'default', { maxInFlightBytes: '2Gi' })
    t.match(await apply(bytes), { code: 0, err: '' })
  })

  await t.test('a field that is not known is dropped where kubectl is told so', async (t) => {
    const { code, err } = await apply(model('dropped', { maxBatchSise: 8 }), '--validate=warn')
    t.equal(code, 0)
    t.match(err, /Warning: unknown field "spec\.maxBatchSise"/)
    const path = '/apis/tutti.dev/v1alpha1/namespaces/default/models/dropped'
    t.notOk('maxBatchSise' in (await plain.get(path))['spec'])
  })

  await t.test('columns show the ready of the wanted pods, and where a Model is', async (t) => {
    const url = 'http://tutti-router-http.default.svc:8000'
    const status = { podsReady: '2/3', url, grpcUrl: 'tutti-router-grpc.default.svc:8001' }
    const tell = async (plural: string, name: string): Promise<PlainObject> =>
      await plain.patch(`/apis/tutti.dev/v1alpha1/namespaces/default/${plural}/${name}/status`, {
        status: plural === 'routers' ? { podsReady: '1/2' } : status,
      })
    await apply(model('shown'))
    await tell('models', 'shown')
    await tell('routers', 'default')
    t.match(await get('models', 'shown'), /^NAME +READY +FORMAT +PODS +.*\nshown +onnx +2\/3 /)
    t.match(await get('models', 'shown', '-o', 'wide'), `   ${url}   ${status.grpcUrl}   `)
    t.match(await get('routers'), /^NAME +READY +PODS +.*\ndefault +1\/2 /)
  })
})
