// needs: apiserver
import { type PlainClient, type PlainObject, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { type CasePlace, openCaseRig } from '../testing/case-rig.ts'
import { isGone } from '../testing/namespaced.ts'

const GROUP = '/apis/resource.k8s.io/v1'
const DRIVER = 'gpu.example.com'
const CLASS = 'gpus'
const POOL = 'node-1'
const DEVICES = ['gpu-0', 'gpu-1']

/** Offers the devices of the node, as a driver does, and a class that takes them. */
async function offerDevices(plain: PlainClient): Promise<void> {
  const expression = `device.driver == '${DRIVER}'`
  await plain.create(`${GROUP}/deviceclasses`, {
    metadata: { name: CLASS },
    spec: { selectors: [{ cel: { expression } }] },
  })
  await plain.create(`${GROUP}/resourceslices`, {
    metadata: { name: POOL },
    spec: {
      driver: DRIVER,
      nodeName: POOL,
      pool: { name: POOL, generation: 1, resourceSliceCount: 1 },
      devices: DEVICES.map((name) => ({ name })),
    },
  })
}

const claimSpec = (count: number) => ({
  devices: { requests: [{ name: 'gpus', exactly: { deviceClassName: CLASS, count } }] },
})

/** A Model on GPUs, which claims give. */
const claiming = (claim: PlainObject, replicas = 1): PlainObject => ({
  instances: { count: 1, kind: 'KIND_GPU' },
  accelerator: { claims: [{ name: 'gpu', ...claim }] },
  scaling: { provider: 'None', replicas },
})

async function podsOf({ plain, path }: CasePlace, name: string): Promise<PlainObject[]> {
  return await plain.list(`${path('pods')}?labelSelector=tutti.dev%2Fmodel%3D${name}`)
}

/** The devices that a claim got from the scheduler. */
const allocatedIn = (claim?: PlainObject): readonly string[] =>
  (claim?.['status']?.allocation?.devices.results ?? []).map(({ device }: PlainObject) => device)

async function openClaimRig(t: Parameters<typeof openCaseRig>[0]) {
  const rig = await openCaseRig(t)
  await offerDevices(rig.server.plain)
  const open = async () => {
    const place = await rig.openPlace()
    const operator = await place.startOperator(t)
    await place.plain.create(place.path('resourceclaimtemplates'), {
      metadata: { name: 'one-gpu' },
      spec: { spec: claimSpec(1) },
    })
    return { place, operator }
  }
  return { open }
}

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

await t.test('claims of devices', { skip }, async (t) => {
  const rig = await openClaimRig(t)

  await t.test('each pod has a device by a template, and asks for no other', async (t) => {
    const { place, operator } = await rig.open()
    const { plain, path } = place
    const template = { resourceClaimTemplateName: 'one-gpu' }
    await place.applyModel('own', claiming(template, 2))
    await plain.until(path('models', 'own'), ({ status } = {}) => status?.readyReplicas === 2)
    await place.ready('models', 'own')
    for (const { spec } of await podsOf(place, 'own')) {
      const [main] = spec.containers
      t.same(spec.resourceClaims, [{ name: 'gpu', ...template }])
      t.same(main.resources.claims, [{ name: 'gpu' }])
      t.notMatch(JSON.stringify(spec.containers), /"nvidia\.com\/gpu"/, 'no extended resource')
      t.ok(main.args.includes('--accelerator=nvidia.com/gpu=all'))
    }
    const allocated = (await plain.list(path('resourceclaims'))).flatMap((claim) =>
      allocatedIn(claim),
    )
    t.same(allocated.toSorted(), DEVICES, 'each has another')
    await operator.atRest()
    await plain.patch(`${path('models', 'own')}/scale`, { spec: { replicas: 3 } })
    const model = await place.condition('models', 'own', 'Degraded=True/Unschedulable')
    const told = model['status'].conditions.find(({ type }: PlainObject) => type === 'Degraded')
    t.match(told.message, /cannot allocate all claims/, 'the words of the scheduler')
    await place.applyModel('own', claiming(template, 0))
    for (const { metadata } of await plain.list(path('resourceclaims'))) {
      await plain.until(path('resourceclaims', metadata.name), isGone)
    }
  })

  await t.test(
    'all pods share a claim that is named, and wait for one that is not there',
    async (t) => {
      const { place } = await rig.open()
      const { plain, path } = place
      const spec = claiming({ resourceClaimName: 'both' }, 2)
      await place.applyModel('shared', spec)
      const model = await place.condition('models', 'shared', 'Accepted=False/ClaimNotFound')
      const told = model['status'].conditions.find(({ type }: PlainObject) => type === 'Accepted')
      t.match(told.message, /'gpu' wants the ResourceClaim "both", which is not in the namespace/)
      await plain.create(path('resourceclaims'), { metadata: { name: 'both' }, spec: claimSpec(2) })
      await plain.until(path('models', 'shared'), ({ status } = {}) => status?.readyReplicas === 2)
      const [claim, ...others] = await plain.list(path('resourceclaims'))
      t.same(others, [])
      t.same(allocatedIn(claim).toSorted(), DEVICES)
      t.equal(claim?.['status'].reservedFor.length, 2)
      await place.applyModel('shared', { ...spec, accelerator: { count: 1 } })
      const made = await plain.until(path('deployments', 'shared-step'), (found) =>
        JSON.stringify(found).includes('"nvidia.com/gpu":"1"'),
      )
      t.notOk(made?.['spec'].template.spec.resourceClaims, 'a device in place of the claim')
    },
  )
})

await t.test(
  'claims are refused where the cluster does not serve them',
  { skip: withoutKube() },
  async (t) => {
    const serverFlags = ['--runtime-config=resource.k8s.io/v1=false']
    const rig = await openCaseRig(t, { hasControllers: false, serverFlags })
    const place = await rig.openPlace()
    await place.startOperator(t)
    const { plain, path } = place
    await place.applyModel('own', claiming({ resourceClaimTemplateName: 'one-gpu' }))
    const refused = await place.condition('models', 'own', 'Accepted=False/ClaimsNotServed')
    const told = refused['status'].conditions.find(({ type }: PlainObject) => type === 'Accepted')
    t.match(
      told.message,
      /^accelerator\.claims: the cluster does not serve resource\.k8s\.io\/v1, w/,
    )
    t.same(await plain.list(path('deployments')), [], 'no pod starts without its devices')
    await place.applyModel('own', { accelerator: { resourceName: 'nvidia.com/gpu' } })
    await place.condition('models', 'own', 'Accepted=True')
  },
)
