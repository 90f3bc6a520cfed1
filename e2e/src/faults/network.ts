import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Test } from 'tap'
import { ROOT } from '../serving.ts'
import { PYTHON } from '../triton-client.ts'
import { command } from './own-namespaces.ts'

/** Address of this process, which is on the network as clients are. */
export const CLIENTS_ADDRESS = '10.99.0.1'

/** Which packets of a host are dropped. */
export interface Loss {
  /** Seen from the host. */
  readonly direction: 'in' | 'out'
  /** Only those of this address; of all, if absent. */
  readonly other?: string
  /** Packets that are dropped, of a hundred; default 100. */
  readonly percent?: number
}

/** Changes that a relay makes to each packet, in both directions. */
export interface Carriage {
  readonly delayMs: number
  /** Up to so much more for each packet, so that packets overtake one another. */
  readonly jitterMs: number
  /** Packets that come twice, of a hundred. */
  readonly duplicatePercent: number
}

const UNHARMED: Carriage = { delayMs: 0, jitterMs: 0, duplicatePercent: 0 }

/** A machine of its own, as far as the network goes. */
export interface Host {
  readonly name: string
  readonly address: string
  /** Words before a command that runs there. */
  readonly inside: readonly string[]
  /** Drops packets from now on. */
  lose(...losses: readonly Loss[]): Promise<void>
  /** Lets so many bits a second pass in each direction, as `tc` writes it: `8mbit`. */
  limit(rate: string): Promise<void>
  /** Only of a host behind a relay. */
  carry(carriage: Carriage): void
  /** Ends all of it. */
  heal(): Promise<void>
}

export type Network = Awaited<ReturnType<typeof startNetwork>>

/** Makes a bridge in the namespace of this process, which must be its own. */
export async function startNetwork(t: Test) {
  // The names of namespaces are files, which this process's own mounts keep from everyone else.
  await command('mount', '-t', 'tmpfs', 'tmpfs', '/run')
  await command('ip', 'link', 'set', 'lo', 'up')
  await command('ip', 'link', 'add', BRIDGE, 'type', 'bridge')
  await command('ip', 'address', 'add', `${CLIENTS_ADDRESS}/24`, 'dev', BRIDGE)
  await command('ip', 'link', 'set', BRIDGE, 'up')
  await nft('add table bridge faults')
  let last = 1
  return {
    /** @param o.isRelayed - through a relay in user space, for what this kernel's `tc` may not know: delay, reordering, duplicates. */
    addHost: async (name: string, o: { readonly isRelayed?: boolean } = {}): Promise<Host> => {
      last += 1
      const address = `10.99.0.${last}`
      await command('ip', 'netns', 'add', name)
      const relay = o.isRelayed === true ? await startRelay(t, name) : await addVeth(name)
      await command('ip', 'link', 'set', portOf(name), 'master', BRIDGE, 'up')
      const inHost = ['-n', name]
      await command('ip', ...inHost, 'address', 'add', `${address}/24`, 'dev', 'eth0')
      await command('ip', ...inHost, 'link', 'set', 'eth0', 'up')
      await command('ip', ...inHost, 'link', 'set', 'lo', 'up')
      for (const [direction, hook] of Object.entries(HOOKS)) {
        const chain = `bridge faults ${name}-${direction}`
        // oxlint-disable-next-line no-await-in-loop -- nft takes one change at a time
        await nft(`add chain ${chain} { type filter hook ${hook} priority 0; }`)
      }
      return toHost(name, address, relay)
    },
  }
}

const BRIDGE = 'faults'
/** Both see what comes from, or goes to, this process as well. */
const HOOKS = { in: 'postrouting', out: 'prerouting' } as const

function toHost(name: string, address: string, carry: Host['carry']): Host {
  const inside = ['nsenter', `--net=/run/netns/${name}`]
  const [enter = '', ...into] = inside
  const onBothEnds = async (...args: readonly string[]): Promise<void> => {
    await command('tc', 'qdisc', args[0] ?? '', 'dev', portOf(name), 'root', ...args.slice(1))
    const there = [...into, 'tc', 'qdisc', args[0] ?? '', 'dev', 'eth0', 'root', ...args.slice(1)]
    await command(enter, ...there)
  }
  let isLimited = false
  return {
    name,
    address,
    inside,
    lose: async (...losses) => {
      for (const loss of losses) {
        // oxlint-disable-next-line no-await-in-loop -- nft takes one change at a time
        await nft(`add rule bridge faults ${name}-${loss.direction} ${ruleOf(name, loss)} drop`)
      }
    },
    limit: async (rate) => {
      isLimited = true
      await onBothEnds('add', 'tbf', 'rate', rate, 'burst', '32kb', 'latency', '200ms')
    },
    carry,
    heal: async () => {
      for (const direction of Object.keys(HOOKS)) {
        // oxlint-disable-next-line no-await-in-loop -- nft takes one change at a time
        await nft(`flush chain bridge faults ${name}-${direction}`)
      }
      if (isLimited) await onBothEnds('del')
      isLimited = false
      carry(UNHARMED)
    },
  }
}

function ruleOf(name: string, { direction, other, percent = 100 }: Loss): string {
  const [interfaceName, side] = direction === 'in' ? ['oifname', 'saddr'] : ['iifname', 'daddr']
  return [
    `${interfaceName} "${portOf(name)}"`,
    ...(other === undefined ? [] : [`ip ${side} ${other}`]),
    ...(percent === 100 ? [] : [`numgen random mod 100 < ${percent}`]),
  ].join(' ')
}

/** The end of a host's link at the bridge. */
function portOf(name: string): string {
  return `p-${name}`
}

async function addVeth(name: string): Promise<Host['carry']> {
  const other = ['peer', 'name', 'eth0', 'netns', name]
  await command('ip', 'link', 'add', portOf(name), 'type', 'veth', ...other)
  return (carriage) => {
    if (carriage !== UNHARMED) throw new Error(`${name} has no relay`)
  }
}

/** Two TAP devices and a program that carries packets between them; it ends with the test. */
async function startRelay(t: Test, name: string): Promise<Host['carry']> {
  const far = `f-${name}`
  const args = [`${ROOT}e2e/python/packet_relay.py`, portOf(name), far]
  const relay = spawn(PYTHON ?? 'python3', args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => relay.kill('SIGKILL'))
  await once(relay.stdout, 'data')
  await command('ip', 'link', 'set', far, 'netns', name, 'name', 'eth0')
  return ({ delayMs, jitterMs, duplicatePercent }) =>
    void relay.stdin.write(`${delayMs} ${jitterMs} ${duplicatePercent}\n`)
}

async function nft(line: string): Promise<void> {
  await command('nft', line)
}
