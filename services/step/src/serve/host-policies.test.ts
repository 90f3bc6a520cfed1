import t from 'tap'
import { readHostPolicies } from './host-policies.ts'

await t.test('a policy names CPUs, by ranges or by a NUMA node', async (t) => {
  const nodes = t.testdir({ node1: { cpulist: '2-3,8\n' }, node2: { cpulist: '\n' } })
  const read = (...texts: readonly string[]) =>
    Object.fromEntries(readHostPolicies({ 'host-policy': texts }, nodes))
  t.same(read(), {})
  t.same(read('p,cpu-cores=0-2', 'gpu_0,cpu-cores=1-1,6-7'), { p: [0, 1, 2], gpu_0: [1, 6, 7] })
  t.same(read('p,numa-node=1'), { p: [2, 3, 8] })
  t.same(read('p,cpu-cores=0-0', 'p,numa-node=1'), { p: [0] }, 'cores go before the node')
  const rows = [
    ['p', 'want POLICY,numa-node=N or POLICY,cpu-cores=FIRST-LAST'],
    ['p,memory=1', 'want POLICY,numa-node=N or POLICY,cpu-cores=FIRST-LAST'],
    ['cpu-cores=0-1', 'want POLICY,numa-node=N or POLICY,cpu-cores=FIRST-LAST'],
    ...['', '3', '0-1,x', '2-1', '0-65536'].map((value) => [
      `p,cpu-cores=${value}`,
      `host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got ${value}`,
    ]),
    ...['9', '2', '../node1'].map((node) => [
      `p,numa-node=${node}`,
      `this machine has no CPUs on NUMA node ${node}`,
    ]),
  ] as const
  for (const [text = '', problem = ''] of rows) {
    const message = `--host-policy: got "${text}": ${problem}`
    t.throws(() => read(text), { reason: 'FLAG_INVALID', message })
  }
})
