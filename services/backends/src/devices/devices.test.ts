import t from 'tap'
import type { CudaDriver } from './cuda-driver.ts'
import { createDevices, NO_DEVICES } from './devices.ts'

const NONE: CudaDriver = { count: 0, problem: 'libcuda.so.1 is absent' }
const askDriver = (driver: CudaDriver) => () => Promise.resolve(driver)

await t.test('what is there is told with how it is known', async (t) => {
  const env = { NVIDIA_VISIBLE_DEVICES: 'GPU-fake-0', PATH: '/bin' }
  const accelerator = { resourceName: 'nvidia.com/gpu', count: 1 }
  const devices = createDevices({ accelerator, env, askDriver: askDriver(NONE) })
  t.same(await devices.cuda(), {
    count: 0,
    found:
      'accelerator nvidia.com/gpu=1, NVIDIA_VISIBLE_DEVICES=GPU-fake-0, no CUDA driver: libcuda.so.1 is absent',
  })
  t.same(await createDevices({ askDriver: askDriver({ count: 2 }) }).cuda(), {
    count: 2,
    found: 'no accelerator, CUDA devices: 2',
  })
  t.same(await createDevices({ askDriver: askDriver({ count: 0 }) }).cuda(), {
    count: 0,
    found: 'no accelerator, CUDA devices: 0',
  })
})

await t.test('the driver is asked once, and not before somebody wants to know', async (t) => {
  let asked = 0
  const devices = createDevices({
    askDriver: async () => {
      asked += 1
      return { count: 1 }
    },
  })
  t.equal(asked, 0)
  await Promise.all([devices.cuda(), devices.any(), devices.cuda()])
  t.equal(asked, 1)
})

await t.test('no more devices of CUDA are used than were given', async (t) => {
  const askSix = askDriver({ count: 6 })
  for (const [resourceName, count] of [
    ['nvidia.com/gpu', 1],
    ['volcano.sh/vgpu-number', 2],
  ] as const) {
    const devices = createDevices({ accelerator: { resourceName, count }, askDriver: askSix })
    t.same(await devices.cuda(), {
      count,
      found: `accelerator ${resourceName}=${count}, CUDA devices: 6`,
    })
  }
})

await t.test('all that there are may be given, as claims of a pod do', async (t) => {
  const accelerator = { resourceName: 'nvidia.com/gpu', count: 'all' } as const
  for (const count of [0, 3]) {
    const devices = createDevices({ accelerator, askDriver: askDriver({ count }) })
    const found = `accelerator nvidia.com/gpu=all, CUDA devices: ${count}`
    t.same(await devices.cuda(), { count, found })
    t.same(await devices.any(), { count, found })
  }
})

await t.test('of other vendors’ devices their number is known, without a driver', async (t) => {
  const accelerator = { resourceName: 'amd.com/gpu', count: 2 }
  const devices = createDevices({ accelerator, askDriver: askDriver(NONE) })
  t.same(await devices.any(), { count: 2, found: 'accelerator amd.com/gpu=2' })
  t.equal((await devices.cuda()).count, 0)
})

for (const resourceName of ['nvidia.com/gpu', 'nvidia.com/gpu.shared', 'nvidia.com/mig-1g.5gb']) {
  await t.test(`${resourceName} is CUDA’s: what the driver offers counts`, async (t) => {
    const accelerator = { resourceName, count: 2 }
    const devices = createDevices({ accelerator, askDriver: askDriver({ count: 1 }) })
    t.equal((await devices.any()).count, 1)
    t.equal((await devices.cuda()).count, 1)
  })
}

await t.test('where there are to be none, there are none', async (t) => {
  t.equal(NO_DEVICES.accelerator, undefined)
  t.equal((await NO_DEVICES.any()).count, 0)
})
