import type { InstanceGroup } from '@tutti/model-config'
import { instanceGroup } from '@tutti/model-config/testing'
import t from 'tap'
import { policyName } from './host-policies.ts'
import { placeInstances } from './placement.ts'
import { modelConfig } from './testing/model-source.ts'

function place(groups: readonly Partial<InstanceGroup>[], count: number) {
  const config = modelConfig([], [], { instance_group: groups.map(instanceGroup) })
  return placeInstances(config, count).map(({ name, kind, deviceId }) =>
    [name, kind, deviceId].join(' '),
  )
}

const GPUS = { kind: 'KIND_GPU', gpus: [0, 3] } as const

await t.test('a group has its count of instances on each GPU that it names', async (t) => {
  t.same(place([{ ...GPUS, count: 2 }], 4), ['g_0 GPU 0', 'g_0 GPU 3', 'g_1 GPU 0', 'g_1 GPU 3'])
})

await t.test('groups follow each other, each with its kind', async (t) => {
  const groups = [{ count: 2 }, { ...GPUS, name: 'h' }, { name: 'i', kind: 'KIND_MODEL' }] as const
  const wanted = ['g_0 CPU 0', 'g_1 CPU 0', 'h_0 GPU 0', 'h_0 GPU 3', 'i_0 MODEL 0']
  t.same(place(groups, 5), wanted)
  t.same(place(groups, 3), wanted.slice(0, 3), 'no more than are wanted')
})

await t.test('what groups lack is as the last of them, never on the CPU instead', async (t) => {
  t.same(place([GPUS], 3), ['g_0 GPU 0', 'g_0 GPU 3', 'm_2 GPU 3'])
  t.same(place([], 1), ['m_0 CPU 0'])
})

await t.test('an instance has the host policy of its group, or that of its kind', async (t) => {
  const groups = [{ host_policy: 'p' }, {}, GPUS, { kind: 'KIND_MODEL' }] as const
  const config = modelConfig([], [], { instance_group: groups.map(instanceGroup) })
  const names = placeInstances(config, 5).map(policyName)
  t.same(names, ['p', 'cpu', 'gpu_0', 'gpu_3', 'model'])
})
