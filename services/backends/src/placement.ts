import type { ModelConfig } from '@tutti/model-config'

/** Where one instance runs, in the words of a Python model's `initialize(args)`. */
export interface Placement {
  readonly group: string
  readonly name: string
  readonly kind: 'CPU' | 'GPU' | 'MODEL'
  readonly deviceId: number
}

const ON_CPU = { kind: 'CPU', deviceId: 0, group: '' } as const
const KINDS = { KIND_AUTO: 'CPU', KIND_CPU: 'CPU', KIND_GPU: 'GPU', KIND_MODEL: 'MODEL' } as const

/**
 * The instances that a normalised configuration asks for, named as Triton names them: group name, `_`, number.
 *
 * @param count - how many there are to be; groups that give fewer are filled up with further ones of the last.
 */
export function placeInstances(config: ModelConfig, count: number): Placement[] {
  const placements: Placement[] = []
  for (const { name, kind, count: size, gpus } of config.instance_group) {
    const devices = kind === 'KIND_GPU' && gpus.length > 0 ? gpus : [0]
    for (let i = 0; i < size; i += 1) {
      for (const deviceId of devices) {
        placements.push({ group: name, name: `${name}_${i}`, kind: KINDS[kind], deviceId })
      }
    }
  }
  while (placements.length < count) {
    const name = `${config.name}_${placements.length}`
    placements.push({ ...(placements.at(-1) ?? ON_CPU), name })
  }
  return placements.slice(0, count)
}
