import t from 'tap'
import { podSpec, type Spec } from '../testing/build-model.ts'
import type { NodeCache } from './step-settings.ts'

const REMOTE: Spec = { storageUri: 's3://bucket/yolo' }
const HOST: NodeCache = {
  place: { kind: 'hostPath', path: '/var/cache/tutti' },
  namespaces: [],
  maxBytes: 1000,
}
const CLAIM: NodeCache = { ...HOST, place: { kind: 'claim', claim: 'model-cache' } }
const withCache = (cache: NodeCache) => ({ settings: { cache } })

await t.test('the container that fetches has the cache, and no other one', async (t) => {
  const { initContainers, containers, volumes } = podSpec(REMOTE, withCache(HOST))
  t.match(
    initContainers?.[0]?.args?.join(' '),
    / --cache \/var\/cache\/tutti --cache-max-bytes 1000/,
  )
  t.same(initContainers?.[0]?.volumeMounts?.at(-1), {
    name: 'tutti-cache',
    mountPath: '/var/cache/tutti',
    subPath: 'vision',
  })
  t.same(volumes?.at(-1), {
    name: 'tutti-cache',
    hostPath: { path: '/var/cache/tutti', type: 'DirectoryOrCreate' },
  })
  t.notMatch(JSON.stringify(containers), 'cache')
  const claimed = podSpec(REMOTE, withCache(CLAIM))
  t.same(claimed.initContainers?.[0]?.volumeMounts?.at(-1), {
    name: 'tutti-cache',
    mountPath: '/var/cache/tutti',
  })
  t.same(claimed.volumes?.at(-1), {
    name: 'tutti-cache',
    persistentVolumeClaim: { claimName: 'model-cache' },
  })
})

await t.test('no template of a user leads to what other namespaces have there', async (t) => {
  const mount = { name: 'tutti-cache', mountPath: '/all' }
  const podTemplate = {
    spec: {
      containers: [
        { name: 'main', volumeMounts: [mount] },
        { name: 'other', volumeMounts: [mount] },
      ],
      initContainers: [
        { name: 'mine', image: 'x', volumeMounts: [mount] },
        {
          name: 'fetch',
          image: 'mine',
          volumeMounts: [
            mount,
            { name: 'tutti-cache', mountPath: '/var/cache/tutti', subPath: 'other' },
          ],
        },
      ],
      volumes: [{ name: 'tutti-cache', emptyDir: {} }],
    },
  }
  const {
    initContainers = [],
    containers,
    volumes,
  } = podSpec({ ...REMOTE, podTemplate }, withCache(HOST))
  const mounts = [...initContainers, ...containers].flatMap(({ name, volumeMounts = [] }) =>
    volumeMounts.filter((one) => one.name === 'tutti-cache').map((one) => ({ of: name, ...one })),
  )
  t.same(mounts, [
    { of: 'fetch', name: 'tutti-cache', mountPath: '/var/cache/tutti', subPath: 'vision' },
  ])
  t.same(
    volumes?.filter(({ name }) => name === 'tutti-cache').map((volume) => Object.keys(volume)),
    [['name', 'hostPath']],
  )
})

await t.test('without a fetch, or in another namespace, there is no cache', async (t) => {
  for (const [fields, cache] of [
    [{ storageUri: 'pvc://models' }, HOST],
    [{ storageUri: 'image://models:1/yolo' }, HOST],
    [REMOTE, { ...HOST, namespaces: ['other'] }],
    [
      {
        ...REMOTE,
        podTemplate: { spec: { initContainers: [{ name: 'fetch', $patch: 'delete' }] } },
      },
      HOST,
    ],
  ] satisfies readonly (readonly [Spec, NodeCache])[]) {
    t.notMatch(JSON.stringify(podSpec(fields, withCache(cache))), /cache/, JSON.stringify(fields))
  }
  const named = podSpec(REMOTE, withCache({ ...HOST, namespaces: ['other', 'vision'] }))
  t.match(JSON.stringify(named), /tutti-cache/)
})

await t.test('where nodes mount images, nothing is copied', async (t) => {
  const o = { settings: { hasImageVolumes: true } }
  const digest = `sha256:${'a'.repeat(64)}`
  const storageUri = 'image://models.example/yolo:1/models/yolo'
  const { initContainers, containers, volumes } = podSpec({ storageUri }, o)
  t.equal(initContainers, undefined)
  t.same(volumes?.[0], { name: 'model', image: { reference: 'models.example/yolo:1' } })
  t.same(containers[0]?.volumeMounts?.[0], {
    name: 'model',
    mountPath: '/models/yolo',
    readOnly: true,
    subPath: 'models/yolo',
  })
  const checked = podSpec({ storageUri, storage: { digest } }, o)
  t.same(
    checked.initContainers?.map(({ args }) => args),
    [['fetch', '--verify', '/models/yolo', '--digest', digest]],
  )
})
