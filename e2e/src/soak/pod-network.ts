import { writeFile } from 'node:fs/promises'
import { command } from '../faults/own-namespaces.ts'
import type { Party, Pod } from '../network-policies/connection.ts'
import { isAllowed, type Network } from '../network-policies/is-allowed.ts'

/** Address of this process, which is on the network as the node is. */
export const NODE_ADDRESS = '10.244.255.1'
const BRIDGE = 'pods'

/** Words before a command that runs in the pod. */
export function inside({ namespace, name }: Pod): readonly string[] {
  return ['nsenter', `--net=/run/netns/${namespace}.${name}`]
}

/**
 * Makes a network namespace for each pod, on one bridge with the node, and lets through what the policies allow. A connection is
 * refused where it begins, so that no rule needs to know which connections there are.
 *
 * @param hosts - names of Services, with the pod behind each.
 */
export async function startPodNetwork(
  pods: readonly Pod[],
  network: Network,
  hosts: Readonly<Record<string, Pod>>,
): Promise<void> {
  // The names of namespaces are files, which this process's own mounts keep from everyone else.
  await command('mount', '-t', 'tmpfs', 'tmpfs', '/run')
  await writeFile('/run/hosts', hostsText(hosts))
  await command('mount', '--bind', '/run/hosts', '/etc/hosts')
  await command('ip', 'link', 'add', BRIDGE, 'type', 'bridge')
  await command('ip', 'address', 'add', `${NODE_ADDRESS}/16`, 'dev', BRIDGE)
  await command('ip', 'link', 'set', BRIDGE, 'up')
  for (const [index, pod] of pods.entries()) {
    const name = `${pod.namespace}.${pod.name}`
    await command('ip', 'netns', 'add', name)
    const other = ['peer', 'name', 'eth0', 'netns', name]
    await command('ip', 'link', 'add', `pod${index}`, 'type', 'veth', ...other)
    await command('ip', 'link', 'set', `pod${index}`, 'master', BRIDGE, 'up')
    await command('ip', '-n', name, 'address', 'add', `${pod.ip}/16`, 'dev', 'eth0')
    await command('ip', '-n', name, 'link', 'set', 'eth0', 'up')
    await command('ip', '-n', name, 'link', 'set', 'lo', 'up')
  }
  await writeFile('/run/policies.nft', rulesOf(pods, network))
  await command('nft', '--file', '/run/policies.nft')
}

function hostsText(hosts: Readonly<Record<string, Pod>>): string {
  const lines = Object.entries(hosts).map(([name, { ip }]) => `${ip} ${name}`)
  return ['127.0.0.1 localhost', ...lines, ''].join('\n')
}

/** Beside the ports that pods name: whether all others are open too. */
const ANY_OTHER = 1

/** Writes the policies for every two pods, in the words of nft. Only packets between pods are forwarded; the node's own are not. */
function rulesOf(pods: readonly Pod[], network: Network): string {
  const rules = pods.flatMap((to) => {
    const named = new Set([ANY_OTHER, 4222, ...to.ports.map(({ port }) => port)])
    return pods.flatMap((from) => {
      if (from === to) return []
      const open = [...named].filter((port) => isAllowed(network, { from, to, port }))
      if (open.length === 0) return []
      const ports = open.includes(ANY_OTHER) ? '1-65535' : open.join(', ')
      return [`ip saddr ${from.ip} ip daddr ${to.ip} tcp dport { ${ports} } accept`]
    })
  })
  return [
    'table bridge policies {',
    '  chain forward {',
    '    type filter hook forward priority 0; policy drop;',
    '    ether type arp accept',
    '    tcp flags & (syn | ack) != syn ip protocol tcp accept',
    ...rules.map((rule) => `    ${rule}`),
    '  }',
    '}',
    '',
  ].join('\n')
}

/** Which of these a pod may connect to, by the policies. */
export function openTo(network: Network, from: Party, to: Pod): readonly number[] {
  const ports = to.ports.map(({ port }) => port)
  return ports.filter((port) => isAllowed(network, { from, to, port }))
}
