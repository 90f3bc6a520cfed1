// needs: apiserver
import type { Deployment, KubeObject, Pod, Resource, Stored } from '@tutti/kube'
import { startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { buildRouterSet } from '../resources/build-router-set.ts'
import { buildEnsembleRoutes } from '../resources/ensemble-routes.ts'
import { withMark } from '../runtime/applied-mark.ts'
import { digestOf } from '../runtime/canonical.ts'
import { isAsApplied } from '../runtime/child-record.ts'
import { type DesiredChild, FIELD_MANAGER, toOwned } from '../runtime/children.ts'
import { build } from '../testing/build-model.ts'
import { routerDefaults } from '../testing/ensemble-rig.ts'
import { openClient } from '../testing/running-parts.ts'
import { storedObject } from '../testing/stored-object.ts'
import { keepChild, keepDeployment, keepPod } from './kept-objects.ts'

const owner = {
  resource: { group: 'x', version: 'v1', plural: 'xs', kind: 'X', namespaced: true },
  object: storedObject({ name: 'owner', namespace: 'vision' }, {}),
}
const { signal } = new AbortController()
const options = { fieldManager: FIELD_MANAGER, signal }

const toRequest = (child: DesiredChild) => {
  const desired = toOwned(owner, child)
  return { desired, digest: digestOf(desired) }
}

/** The smallest Model, one with all that has defaults of the server within lists, and a router. */
const CHILDREN: readonly DesiredChild[] = [
  ...build(),
  ...build(
    {
      scaling: {
        provider: 'HPA',
        minReplicas: 1,
        maxReplicas: 4,
        metrics: [
          {
            type: 'Resource',
            resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } },
          },
        ],
      },
      resources: { limits: { cpu: '1', memory: '1Gi' } },
      podTemplate: {
        spec: {
          containers: [
            {
              name: 'main',
              env: [{ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
            },
            { name: 'sidecar', image: 'localhost/x:1' },
          ],
        },
      },
    },
    { name: 'large', live: 2 },
  ),
  ...buildRouterSet(
    { namespace: 'vision', defaults: routerDefaults(), spec: {}, replicas: 2 },
    { ensembles: [] },
  ),
  ...buildEnsembleRoutes({
    name: 'e',
    namespace: 'vision',
    expose: {
      ingress: {
        className: 'c',
        hosts: ['e.example'],
        tls: [{ hosts: ['e.example'], secretName: 's' }],
      },
    },
  }),
]

/** The server adds to what belongs to one field as a whole: the version to a reference to a field. */
const ADDED_TO = ['Deployment large-step']

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  const { client, close } = openClient(server.access())
  t.teardown(close)
  const { plain } = server
  await plain.create('/api/v1/namespaces', { metadata: { name: 'vision' } })
  const apply = (resource: Resource, child: DesiredChild): Promise<Stored<KubeObject>> =>
    client.apply(resource, withMark(toRequest(child)), options)
  /** As another would. @returns undefined if the server refuses it. */
  const replace = async (resource: Resource, object: unknown) => {
    const o = { fieldManager: 'other', signal }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object of the server's with another value
    return await client.replace(resource, object as Stored<KubeObject>, o).catch(() => undefined)
  }

  await t.test('what was just applied counts as applied', async (t) => {
    for (const child of CHILDREN) {
      const { resource } = child
      const kept = keepChild(await apply(resource, child))
      const name = `${resource.kind} ${kept.metadata.name}`
      t.ok(isAsApplied(kept, toRequest(child)), name)
      // Its fields are kept only where the server added to what belongs together.
      const isInFull = 'fields' in kept
      t.equal(isInFull, ADDED_TO.includes(name), name)
    }
  })

  await t.test('whatever another changes of ours is seen', async (t) => {
    let changes = 0
    const ofEachKind = new Map(CHILDREN.map((child) => [child.resource.kind, child]))
    for (const child of ofEachKind.values()) {
      const { resource, object } = child
      for (const path of leavesOf(toOwned(owner, child))) {
        const live = await client.get(resource, object.metadata)
        const replaced = await replace(resource, withOther(live, path))
        // Fields that can never be changed, or whose change the server refuses, are left out.
        if (replaced === undefined) continue
        changes += 1
        t.notOk(isAsApplied(keepChild(replaced), toRequest(child)), path.join('.'))
        const { resourceVersion } = replaced.metadata
        await replace(resource, { ...live, metadata: { ...live.metadata, resourceVersion } })
        t.ok(isAsApplied(keepChild(await apply(resource, child)), toRequest(child)))
      }
    }
    t.ok(changes > 100, `${changes} changes`)
  })

  await t.test('what others add is nothing of ours', async (t) => {
    for (const child of CHILDREN) {
      const { resource, object } = child
      const metadata = { labels: { team: 'x' }, annotations: { note: 'y' } }
      const patch = { ...options, fieldManager: 'other', patch: { metadata } }
      const patched = await client.mergePatch(resource, object.metadata, patch)
      t.ok(isAsApplied(keepChild(patched), toRequest(child)), resource.kind)
    }
  })
})

/** Paths of the desired values, without those that identify the object and its owner. */
function leavesOf(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (value === undefined || /^metadata\.(name|.*\.uid$)/.test(path.join('.'))) return []
  if (typeof value !== 'object' || value === null) return [path]
  return Object.entries(value).flatMap(([name, part]) => leavesOf(part, [...path, name]))
}

function withOther(value: unknown, [name, ...path]: readonly string[]): unknown {
  if (name === undefined) return otherThan(value)
  if (Array.isArray(value)) {
    return value.map((part, i) => (String(i) === name ? withOther(part, path) : part))
  }
  return { ...Object(value), [name]: withOther(Object(value)[name], path) }
}

function otherThan(value: unknown): unknown {
  if (typeof value === 'number') return value + 1
  if (typeof value === 'boolean') return !value
  return `${String(value)}x`
}

await t.test('what no reconcile reads is not kept, and does not compile', async (t) => {
  const kept = keepDeployment(
    storedObject<Pick<Deployment, 'spec' | 'status'>>(
      { name: 'a', labels: { other: 'x' }, annotations: { note: 'y' } },
      {
        spec: {
          replicas: 2,
          selector: {},
          template: {
            metadata: { annotations: { 'tutti.dev/template': 'd', n: 'm' } },
            spec: { containers: [] },
          },
        },
        status: {
          replicas: 1,
          conditions: [
            { type: 'Available', status: 'True' },
            { type: 'Progressing', status: 'True', reason: 'R', message: 'not read' },
            { type: 'ReplicaFailure', status: 'True', reason: 'F', message: 'read' },
          ],
        },
      },
    ),
  )
  t.same(kept.spec, {
    replicas: 2,
    template: { metadata: { annotations: { 'tutti.dev/template': 'd' } } },
  })
  t.same(kept.status, {
    replicas: 1,
    conditions: [
      { type: 'Progressing', status: 'True', reason: 'R' },
      { type: 'ReplicaFailure', status: 'True', reason: 'F', message: 'read' },
    ],
  })
  // @ts-expect-error -- annotations are not kept
  t.equal(kept.metadata.annotations?.['note'], undefined)
  // @ts-expect-error -- the selector is not kept
  t.equal(kept.spec.selector, undefined)
  // @ts-expect-error -- the pods' specification is not kept
  t.equal(kept.spec.template.spec, undefined)
  t.same(kept.metadata.labels, {})
})

await t.test('of a pod, what its failures and its Model follow from is kept', async (t) => {
  const container = {
    name: 'main',
    ready: true,
    restartCount: 2,
    image: 'x',
    imageID: 'x@sha256:y',
  }
  const terminated = { exitCode: 1, finishedAt: '2026-01-01T00:00:00Z' }
  const metadata = {
    name: 'a',
    labels: { 'tutti.dev/model': 'm', 'app.kubernetes.io/component': 'step', team: 'x' },
    annotations: { 'tutti.dev/template': 'd', note: 'y' },
  }
  const kept = keepPod(
    storedObject<Pick<Pod, 'spec' | 'status'>>(metadata, {
      spec: { nodeName: 'n', containers: [{ name: 'main' }], readinessGates: [] },
      status: {
        phase: 'Running',
        podIP: '10.0.0.1',
        startTime: '2026-01-01T00:00:00Z',
        conditions: [{ type: 'Ready', status: 'False', reason: 'R', message: 'why' }],
        containerStatuses: [{ ...container, containerID: 'c', lastState: { terminated } }],
      },
    }),
  )
  t.same(kept.metadata.labels, {
    'app.kubernetes.io/component': 'step',
    'tutti.dev/model': 'm',
  })
  t.same(kept.metadata.annotations, { 'tutti.dev/template': 'd' })
  t.same(kept.spec, { nodeName: 'n', readinessGates: [] })
  const { image: _, imageID: __, ...told } = container
  t.same(kept.status, {
    phase: 'Running',
    podIP: '10.0.0.1',
    conditions: [{ type: 'Ready', status: 'False', reason: 'R', message: 'why' }],
    containerStatuses: [{ ...told, containerID: 'c', lastState: { terminated } }],
  })
  // @ts-expect-error -- containers are not kept
  t.equal(kept.spec.containers, undefined)
  // @ts-expect-error -- images are not kept
  t.equal(kept.status?.containerStatuses?.[0]?.image, undefined)
})
