// needs: apiserver
import { createMetrics, silentLogger, systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import type { Client } from './client.ts'
import { createClient } from './create-client.ts'
import { CONTROLLER_REVISION, DEPLOYMENT, type Deployment } from './kinds/apps.ts'
import { EVENT, LEASE, toMicroTime } from './kinds/coordination.ts'
import { CONFIG_MAP, SERVICE_ACCOUNT } from './kinds/core.ts'
import { HTTP_ROUTE } from './kinds/networking.ts'
import { POD_DISRUPTION_BUDGET } from './kinds/scaling.ts'
import {
  isAlreadyExists,
  isConflict,
  isExpired,
  isForbidden,
  isNotFound,
  isTerminal,
  isTransient,
  isUidMismatch,
  KubeError,
} from './kube-error.ts'
import type { Desired, KubeObject } from './object.ts'
import { defineResource } from './resource.ts'
import {
  type ApiServer,
  startApiServer,
  startHttpFaultProxy,
  withoutKube,
} from './testing/index.ts'
import type { ClusterAccess } from './transport/cluster-access.ts'
import { createTransport } from './transport/create-transport.ts'

const NAMESPACE = { ...defineResource('v1', 'namespaces', 'Namespace'), namespaced: false }
const CUSTOM_RESOURCE_DEFINITION = {
  ...defineResource<KubeObject & { readonly spec: object }>(
    'apiextensions.k8s.io/v1',
    'customresourcedefinitions',
    'CustomResourceDefinition',
  ),
  namespaced: false,
}
const OPTIONS = { fieldManager: 'tester' }
const NONE_UID = '00000000-0000-0000-0000-000000000000'

function openClient(t: Test, access: ClusterAccess): Client {
  const transport = createTransport(access, {
    clock: systemClock,
    log: silentLogger,
    metrics: createMetrics(),
    userAgent: 'test',
  })
  t.teardown(() => transport.close())
  return createClient(transport)
}

function deployment(namespace: string, replicas?: number): Desired<Deployment> {
  const labels = { app: 'x' }
  return {
    metadata: { name: 'x', namespace },
    spec: {
      ...(replicas !== undefined && { replicas }),
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'main', image: 'localhost/x:1' }] },
      },
    },
  }
}

/** Catches what a promise is rejected with. */
async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server: ApiServer = await startApiServer({
    users: [{ token: 'missing', user: 'missing' }],
  })
  t.teardown(() => server.stop())
  const client = openClient(t, server.access())
  let namespaces = 0
  const newNamespace = async (): Promise<string> => {
    namespaces += 1
    const name = `test-${namespaces}`
    await client.create(NAMESPACE, { metadata: { name } }, OPTIONS)
    return name
  }

  await t.test('a list may be of the metadata alone, page by page too', async (t) => {
    const namespace = await newNamespace()
    const labels = { app: 'listed' }
    for (const name of ['a', 'b', 'c']) {
      const object = { metadata: { name, namespace, labels }, data: { key: 'value' } }
      await client.create(CONFIG_MAP, object, OPTIONS)
    }
    const wanted = { namespace, labelSelector: 'app=listed', pageSize: 2 }
    const whole = await client.list(CONFIG_MAP, wanted)
    const { items } = await client.list<KubeObject>(CONFIG_MAP, { ...wanted, isMetadataOnly: true })
    t.same(
      items.map(({ metadata }) => metadata),
      whole.items.map(({ metadata }) => metadata),
    )
    t.equal(whole.items.filter((item) => Object.hasOwn(item, 'data')).length, 3)
    t.equal(items.filter((item) => Object.hasOwn(item, 'data')).length, 0)
  })

  await t.test('an apply that changes nothing leaves the version alone', async (t) => {
    const namespace = await newNamespace()
    const made = await client.apply(DEPLOYMENT, deployment(namespace, 3), OPTIONS)
    t.equal(made.spec.replicas, 3)
    t.equal(made.kind, 'Deployment')
    const again = await client.apply(DEPLOYMENT, deployment(namespace, 3), OPTIONS)
    t.equal(again.metadata.resourceVersion, made.metadata.resourceVersion)
    const changed = await client.apply(DEPLOYMENT, deployment(namespace, 4), OPTIONS)
    t.equal(changed.metadata.generation, 2)
    const dropped = await client.apply(DEPLOYMENT, deployment(namespace), OPTIONS)
    t.equal(dropped.spec.replicas, 1, 'what is no longer named goes back to its default')
  })

  await t.test('an apply with a uid never makes an object', async (t) => {
    const namespace = await newNamespace()
    const desired = deployment(namespace, 1)
    const guarded = (uid: string): Promise<unknown> =>
      client.apply(
        DEPLOYMENT,
        { ...desired, metadata: { ...desired.metadata, uid } },
        { fieldManager: 'tester' },
      )
    const gone = await failureOf(guarded(NONE_UID))
    t.ok(isUidMismatch(gone) && isConflict(gone) && !isTerminal(gone), String(gone))
    const { metadata } = await client.apply(DEPLOYMENT, desired, OPTIONS)
    await guarded(metadata.uid)
    const other = await failureOf(guarded(NONE_UID))
    t.ok(isUidMismatch(other) && !isTerminal(other), String(other))
    t.notOk(isTransient(other))
  })

  await t.test('an apply takes a field over from another manager', async (t) => {
    const namespace = await newNamespace()
    const key = { namespace, name: 'x' }
    await client.apply(DEPLOYMENT, deployment(namespace, 1), OPTIONS)
    const edit = { fieldManager: 'kubectl-edit', patch: { spec: { replicas: 5 } } }
    t.equal((await client.mergePatch(DEPLOYMENT, key, edit)).spec.replicas, 5)
    t.equal((await client.apply(DEPLOYMENT, deployment(namespace, 1), OPTIONS)).spec.replicas, 1)
  })

  await t.test('a field that the server does not know is terminal in every verb', async (t) => {
    const namespace = await newNamespace()
    const desired = deployment(namespace)
    const odd = { ...desired, spec: { ...desired.spec, color: 'blue' } }
    const applied = await failureOf(client.apply(DEPLOYMENT, odd, OPTIONS))
    t.ok(applied instanceof KubeError && applied.status === 500, 'the server itself calls it 500')
    const created = await failureOf(client.create(DEPLOYMENT, odd, OPTIONS))
    await client.create(DEPLOYMENT, desired, OPTIONS)
    const patched = await failureOf(
      client.mergePatch(
        DEPLOYMENT,
        { namespace, name: 'x' },
        { ...OPTIONS, patch: { spec: { color: 1 } } },
      ),
    )
    for (const error of [applied, created, patched]) {
      t.ok(isTerminal(error) && !isTransient(error), String(error))
      t.match(String(error), /color/)
    }
  })

  await t.test('an object that breaks a rule is terminal, with the field', async (t) => {
    const namespace = await newNamespace()
    const invalid = await failureOf(client.apply(DEPLOYMENT, deployment(namespace, -1), OPTIONS))
    t.ok(isTerminal(invalid))
    t.ok(invalid instanceof KubeError && invalid.causes[0]?.field === 'spec.replicas')
    t.ok(invalid instanceof KubeError && invalid.reason === 'Invalid')
  })

  await t.test('status is written beside the spec, and not for what is gone', async (t) => {
    const namespace = await newNamespace()
    const status = { metadata: { name: 'x', namespace }, status: { observedGeneration: 1 } }
    t.ok(isNotFound(await failureOf(client.applyStatus(DEPLOYMENT, status, OPTIONS))))
    await client.apply(DEPLOYMENT, deployment(namespace, 2), OPTIONS)
    const written = await client.applyStatus(DEPLOYMENT, status, OPTIONS)
    t.equal(written.status?.observedGeneration, 1)
    t.equal(written.spec.replicas, 2)
    t.equal(written.metadata.generation, 1)
  })

  await t.test('scale is set through its subresource', async (t) => {
    const namespace = await newNamespace()
    const key = { namespace, name: 'x' }
    await client.apply(DEPLOYMENT, deployment(namespace), OPTIONS)
    const patch = { spec: { replicas: 0 } }
    await client.mergePatch(DEPLOYMENT, key, { ...OPTIONS, subresource: 'scale', patch })
    t.equal((await client.get(DEPLOYMENT, key)).spec.replicas, 0)
  })

  await t.test('create, replace and delete keep to what was read', async (t) => {
    const namespace = await newNamespace()
    const key = { namespace, name: 'x' }
    const meta = { name: 'x', namespace }
    const lease = { metadata: meta, spec: { holderIdentity: 'a', renewTime: toMicroTime(1e12) } }
    const made = await client.create(LEASE, lease, OPTIONS)
    t.equal(made.spec?.renewTime, '2001-09-09T01:46:40.000000Z')
    t.ok(isAlreadyExists(await failureOf(client.create(LEASE, lease, OPTIONS))))
    const held = await client.replace(
      LEASE,
      { ...made, spec: { ...made.spec, holderIdentity: 'b' } },
      OPTIONS,
    )
    t.equal(held.spec?.holderIdentity, 'b')
    t.ok(isConflict(await failureOf(client.replace(LEASE, made, OPTIONS))), 'the version is old')
    const old = { resourceVersion: made.metadata.resourceVersion }
    t.ok(isConflict(await failureOf(client.delete(LEASE, key, { preconditions: old }))))
    const wrong = await failureOf(client.delete(LEASE, key, { preconditions: { uid: NONE_UID } }))
    t.ok(isConflict(wrong) && isUidMismatch(wrong), String(wrong))
    await client.delete(LEASE, key, { preconditions: { uid: made.metadata.uid } })
    t.ok(isNotFound(await failureOf(client.delete(LEASE, key))))
  })

  await t.test('a list is read page by page, and has whole objects', async (t) => {
    const namespace = await newNamespace()
    for (let i = 0; i < 7; i++) {
      const labels = { half: String(i % 2) }
      await client.create(CONFIG_MAP, { metadata: { name: `m${i}`, namespace, labels } }, OPTIONS)
    }
    const proxy = await startHttpFaultProxy(server)
    t.teardown(() => proxy.close())
    const counted = openClient(t, proxy.access())
    const all = await counted.list(CONFIG_MAP, { namespace, pageSize: 2 })
    t.equal(proxy.requests, 4)
    t.same(
      all.items.map(({ metadata }) => metadata.name),
      ['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6'],
    )
    t.match(all.items[0], { apiVersion: 'v1', kind: 'ConfigMap' })
    const half = await counted.list(CONFIG_MAP, { namespace, labelSelector: 'half=1' })
    t.equal(half.items.length, 3)
    const fieldSelector = 'metadata.name=m3'
    t.equal((await counted.list(CONFIG_MAP, { namespace, fieldSelector })).items.length, 1)
    t.ok((await counted.list(CONFIG_MAP)).items.length >= 7, 'of all namespaces')
  })

  await t.test('a list whose pages expire says so', async (t) => {
    const namespace = await newNamespace()
    for (const name of ['a', 'b', 'c']) {
      await client.create(CONFIG_MAP, { metadata: { name, namespace } }, OPTIONS)
    }
    const proxy = await startHttpFaultProxy(server)
    t.teardown(() => proxy.close())
    proxy.addRule({ when: hasToken, fault: { type: 'answer', status: 410 } })
    const counted = openClient(t, proxy.access())
    const error = await failureOf(counted.list(CONFIG_MAP, { namespace, pageSize: 2 }))
    t.ok(isExpired(error), String(error))
  })

  await t.test('who may not is told so', async (t) => {
    const stranger = openClient(t, server.access('missing'))
    const error = await failureOf(stranger.list(CONFIG_MAP))
    t.ok(isForbidden(error) && !isTransient(error) && !isTerminal(error))
    const unknown = openClient(t, server.access('wrong'))
    t.match(await failureOf(unknown.list(CONFIG_MAP)), { status: 401, reason: 'Unauthorized' })
  })

  await t.test('a kind that the server lacks is known as such', async (t) => {
    t.equal(await client.serves(HTTP_ROUTE), false)
    t.equal(await client.serves(DEPLOYMENT), true)
    t.equal(await client.serves({ ...DEPLOYMENT, plural: 'trombones' }), false)
    t.equal(await client.serves(CONFIG_MAP), true)
    t.ok(isNotFound(await failureOf(client.list(HTTP_ROUTE))))
  })

  await t.test('custom resources go the same way', async (t) => {
    interface Widget extends KubeObject {
      readonly spec?: { readonly size?: number }
    }
    const widget = defineResource<Widget>('test.tutti.dev/v1', 'widgets', 'Widget')
    const size = { type: 'integer' }
    await client.apply(
      CUSTOM_RESOURCE_DEFINITION,
      {
        metadata: { name: 'widgets.test.tutti.dev' },
        spec: {
          group: widget.group,
          scope: 'Namespaced',
          names: { plural: 'widgets', kind: 'Widget' },
          versions: [
            {
              name: 'v1',
              served: true,
              storage: true,
              schema: {
                openAPIV3Schema: {
                  type: 'object',
                  properties: { spec: { type: 'object', properties: { size } } },
                },
              },
            },
          ],
        },
      },
      OPTIONS,
    )
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.test.tutti.dev'
    await server.plain.until(path, isEstablished)
    const namespace = await newNamespace()
    const made = await client.apply(
      widget,
      { metadata: { name: 'w', namespace }, spec: { size: 3 } },
      OPTIONS,
    )
    t.equal(made.spec?.size, 3)
    t.match(made, { apiVersion: 'test.tutti.dev/v1', kind: 'Widget' })
    t.equal((await client.list(widget, { namespace })).items.length, 1)
  })

  await t.test('the server takes our kinds as we write them', async (t) => {
    const namespace = await newNamespace()
    const metadata = { name: 'x', namespace }
    await client.apply(SERVICE_ACCOUNT, { metadata, automountServiceAccountToken: false }, OPTIONS)
    await client.apply(CONTROLLER_REVISION, { metadata, revision: 1, data: { a: [1] } }, OPTIONS)
    const selector = { matchLabels: { a: 'b' } }
    await client.apply(POD_DISRUPTION_BUDGET, { metadata, spec: { selector } }, OPTIONS)
    const event = await client.create(
      EVENT,
      {
        metadata,
        eventTime: toMicroTime(1e12),
        reportingController: 'tutti.dev/operator',
        reportingInstance: 'a',
        action: 'Test',
        reason: 'Tested',
        type: 'Normal',
        regarding: { kind: 'Deployment', namespace, name: 'x' },
      },
      OPTIONS,
    )
    t.equal(event.reason, 'Tested')
  })

  await t.test('a bug of the caller is an error before anything is sent', async (t) => {
    await t.rejects(client.get(CONFIG_MAP, { name: 'x' }), /ConfigMap "x" has no namespace/)
    await t.rejects(
      client.get(NAMESPACE, { name: 'x', namespace: 'y' }),
      /namespaces belong to no namespace, got namespace "y"/,
    )
  })
})

function hasToken(request: { readonly query: URLSearchParams }): boolean {
  return request.query.has('continue')
}

function isEstablished(crd: Record<string, unknown> | undefined): boolean {
  return JSON.stringify(crd ?? {}).includes('"type":"Established"')
}
