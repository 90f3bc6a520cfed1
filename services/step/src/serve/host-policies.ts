import { readFileSync } from 'node:fs'
import type { HostPolicies } from '@tutti/backends'
import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'

export const HOST_POLICY_FLAGS = {
  'host-policy': {
    type: 'string',
    repeatable: true,
    description:
      'POLICY,cpu-cores=FIRST-LAST,... or POLICY,numa-node=N: the CPUs of Python and TorchScript instances whose group names that host_policy. Of groups that name none: cpu, gpu_N, model.',
  },
} as const satisfies FlagTable

const FLAG = '--host-policy'
/** Far above the CPUs of any machine; a range is written out. */
const MOST_CPU = 65_535

/**
 * Reads the CPUs of each host policy. `cpu-cores` takes precedence over `numa-node`. The memory follows the CPUs: Linux allocates
 * it on the node of the thread that uses it first.
 *
 * @param nodes - folder where the system lists its NUMA nodes.
 * @throws ServeError FLAG_INVALID
 */
export function readHostPolicies(
  flags: FlagValues<typeof HOST_POLICY_FLAGS>,
  nodes = '/sys/devices/system/node',
): HostPolicies {
  const ofNodes = new Map<string, readonly number[]>()
  const ofCores = new Map<string, readonly number[]>()
  for (const text of flags['host-policy']) {
    const [, policy = '', setting = '', value = ''] = /^([^,]+),([^=]+)=(.*)$/s.exec(text) ?? []
    if (setting === 'cpu-cores') ofCores.set(policy, readRanges(text, value))
    else if (setting === 'numa-node') ofNodes.set(policy, readNode(text, value, nodes))
    else throw refusal(text, 'want POLICY,numa-node=N or POLICY,cpu-cores=FIRST-LAST')
  }
  return new Map([...ofNodes, ...ofCores])
}

function readRanges(text: string, value: string): readonly number[] {
  const ranges = value.split(',').map((range) => {
    const [, first = '', last = ''] = /^(\d+)-(\d+)$/.exec(range) ?? []
    return cpusOf(first, last)
  })
  const cpus = ranges.filter((range) => range !== undefined)
  if (cpus.length === ranges.length) return cpus.flat()
  const want = '<lower_cpu_core_id>-<upper_cpu_core_id>'
  throw refusal(text, `host policy setting 'cpu-cores' format is '${want}'. Got ${value}`)
}

/** Lists the CPUs of a range; undefined for any other text. */
function cpusOf(first: string, last = first): readonly number[] | undefined {
  const [from, to] = [Number(first), Number(last)]
  if (first === '' || from > to || to > MOST_CPU) return undefined
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

function readNode(text: string, value: string, nodes: string): readonly number[] {
  const node = /^\d+$/.test(value) ? value : 'x'
  try {
    const list = readFileSync(`${nodes}/node${node}/cpulist`, 'utf8').trim()
    const cpus = list.split(',').flatMap((range) => {
      const [first = '', last] = range.split('-')
      return cpusOf(first, last) ?? []
    })
    if (cpus.length > 0) return cpus
  } catch {
    // Not Linux, or no such node: told below.
  }
  throw refusal(text, `this machine has no CPUs on NUMA node ${value}`)
}

function refusal(text: string, problem: string) {
  return flagRefusal(FLAG, `got "${text}": ${problem}`)
}
