// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { openCaseRig } from '../testing/case-rig.ts'

const skip = withoutKube()
const IMAGE = { storageUri: 'image://models.example/yolo:1/models/yolo' }

await t.test('the API server takes the volumes of caches and images', { skip }, async (t) => {
  const serverFlags = ['--feature-gates=ImageVolume=true']
  const rig = await openCaseRig(t, { hasControllers: false, serverFlags })
  const place = await rig.openPlace()
  const flags = ['--image-volumes=true', '--cache-claim=model-cache']
  await place.startVersion(t, { name: 'one', flags })
  const { plain, path } = place
  await place.applyModel('image', IMAGE)
  await place.condition('models', 'image', 'Accepted=True')
  const image = await plain.until(path('deployments', 'image-step'), (found) => found !== undefined)
  const { volumes, containers } = image?.['spec'].template.spec ?? {}
  t.same(volumes[0], {
    name: 'model',
    image: { reference: 'models.example/yolo:1', pullPolicy: 'IfNotPresent' },
  })
  t.match(containers[0].volumeMounts[0], { mountPath: '/models/image', subPath: 'models/yolo' })
  await place.applyModel('fetched', { storageUri: 'hf://owner/name@v1/onnx' })
  const fetched = await plain.until(
    path('deployments', 'fetched-step'),
    (found) => found !== undefined,
  )
  const [fetch] = fetched?.['spec'].template.spec.initContainers ?? []
  t.match(fetch.args.join(' '), /--uri hf:\/\/owner\/name@v1\/onnx .* --cache \/var\/cache\/tutti /)
  t.match(fetch.volumeMounts.at(-1), { name: 'tutti-cache', mountPath: '/var/cache/tutti' })
})

await t.test(
  'a cluster without image volumes makes pods without the files',
  { skip },
  async (t) => {
    const serverFlags = ['--feature-gates=ImageVolume=false']
    const rig = await openCaseRig(t, { hasControllers: false, serverFlags })
    const place = await rig.openPlace()
    await place.startVersion(t, { name: 'one', flags: ['--image-volumes=true'] })
    const { plain, path } = place
    await place.applyModel('image', IMAGE)
    const image = await plain.until(
      path('deployments', 'image-step'),
      (found) => found !== undefined,
    )
    const { volumes } = image?.['spec'].template.spec ?? {}
    // As docs/model-addresses.md says: the API server refuses nothing.
    t.same(
      volumes.map(({ name }: { readonly name: string }) => name),
      ['nats', 'tmp'],
    )
  },
)
