import { fileURLToPath } from 'node:url'
import { type StartedProcess, startProcess, until } from '@tutti/chassis/testing'
import { BOTH_WAYS, type Fault } from './fault.ts'
import { command } from './own-namespaces.ts'
import type { System } from './system.ts'

/** Starts a client with a machine of its own, see client-process.ts. */
async function startClient(system: System, mode: 'wait' | 'download'): Promise<StartedProcess> {
  const [enter = '', ...into] = system.client.inside
  const program = fileURLToPath(new URL('client-process.ts', import.meta.url))
  const address = `${system.targets[0]?.address}:8001`
  return await startProcess(enter, [...into, process.execPath, program, address, mode], {
    readyWhen: (line) => line === 'asks',
  })
}

/** Connections of that client that what it asks still has. */
async function connectionsOf(system: System): Promise<number> {
  const [enter = '', ...into] = system.targets[0]?.inside ?? []
  const table = await command(enter, ...into, 'cat', '/proc/self/net/tcp')
  // The kernel writes an address as a number in the machine's order of bytes.
  const bytes = system.client.address.split('.').toReversed()
  const written = bytes.map((byte) => Number(byte).toString(16).padStart(2, '0')).join('')
  return table.split(`${written.toUpperCase()}:`).length - 1
}

const GENTLE = { ways: BOTH_WAYS, errors: [], withinMs: 60_000 }

export const CLIENT_FAULTS: readonly Fault[] = [
  {
    name: 'machine of a client gone without a word, with requests under way',
    ...GENTLE,
    heldMs: 0,
    strike: async (system) => {
      const client = await startClient(system, 'wait')
      await system.client.lose({ direction: 'in' }, { direction: 'out' })
      await client.stop('SIGKILL')
      await until('its connection is gone', async () => (await connectionsOf(system)) === 0)
    },
    undo: (system) => system.client.heal(),
  },
  {
    name: 'client reads large answers at 256 kbit/s',
    ...GENTLE,
    heldMs: 0,
    strike: async (system) => {
      await system.client.limit('256kbit')
      const client = await startClient(system, 'download')
      await client.waitForLine((line) => line === 'answered')
      await client.stop('SIGKILL')
    },
    undo: (system) => system.client.heal(),
  },
]
