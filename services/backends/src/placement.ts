import type { ModelConfig } from '@tutti/model-config'

/** The place where one instance runs, in the words of a Python model's `initialize(args)`. */
export interface Placement {
  readonly group: string
  readonly name: string
  readonly kind: 'CPU' | 'GPU' | 'MODEL'
  readonly deviceId: number
  /** The group's `host_policy`; '' if it names none. */
  readonly policy: string
}

const ON_CPU = { kind: 'CPU', deviceId: 0, group: '', policy: '' } as const
const KINDS = { KIND_AUTO: 'CPU', KIND_CPU: 'CPU', KIND_GPU: 'GPU', KIND_MODEL: 'MODEL' } as const

/**
 * Lists the instances that a normalised configuration asks for, named as Triton names them: group name, `_`, number.
 *
 * @param count - number of instances; if the groups give fewer, the last group has more.
 */
export function placeInstances(config: ModelConfig, count: number): Placement[] {
  const placements: Placement[] = []
  for (const { name, kind, count: size, gpus, host_policy: policy } of config.instance_group) {
    const devices = kind === 'KIND_GPU' && gpus.length > 0 ? gpus : [0]
    for (let i = 0; i < size; i += 1) {
      for (const deviceId of devices) {
        const instance = { group: name, name: `${name}_${i}` }
        placements.push({ ...instance, kind: KINDS[kind], deviceId, policy })
      }
    }
  }
  while (placements.length < count) {
    const name = `${config.name}_${placements.length}`
    placements.push({ ...(placements.at(-1) ?? ON_CPU), name })
  }
  return placements.slice(0, count)
}
