import t from 'tap'
import { openDevices } from './model-flags.ts'

const given = (text: string | undefined) => openDevices(text).accelerator

await t.test('--accelerator names a resource, and how many there are', async (t) => {
  t.equal(given(undefined), undefined)
  t.same(given('nvidia.com/gpu'), { resourceName: 'nvidia.com/gpu', count: 1 })
  t.same(given('nvidia.com/gpu=all'), { resourceName: 'nvidia.com/gpu', count: 'all' })
  t.same(given('nvidia.com/mig-1g.5gb=4'), { resourceName: 'nvidia.com/mig-1g.5gb', count: 4 })
})

for (const text of [
  '',
  'gpu',
  'nvidia.com/gpu=',
  'nvidia.com/gpu=0',
  'nvidia.com/gpu=65',
  'a=b=1',
  'amd.com/gpu=all',
]) {
  await t.test(`"${text}" is refused`, async (t) => {
    t.throws(() => openDevices(text), {
      reason: 'FLAG_INVALID',
      message: `--accelerator: got "${text}", want DOMAIN/NAME=COUNT, e.g. nvidia.com/gpu=1, with a count of 1 to 64; or nvidia.com/gpu=all`,
    })
  })
}
