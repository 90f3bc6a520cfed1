import { createServer, type Server } from 'node:net'
import type { FlagValues } from '@tutti/chassis'
import { listenOn } from '@tutti/serving'
import { namePortFlag } from './port-flag.ts'
import type { SERVER_FLAGS } from './server-flags.ts'

/**
 * Looks whether all that `openServers` would listen on is free, for an executable that takes minutes before it listens. Clients are
 * refused meanwhile, as by any server that is not there; so a program may still take a port, which `openServers` then says. The
 * listeners of the edge are left out: only routers have them.
 *
 * @param page - undefined for none.
 * @throws ServeError SETTING_INVALID that names the flag.
 */
export async function checkPorts(
  flags: FlagValues<typeof SERVER_FLAGS>,
  page: { readonly address: string; readonly port: number | undefined },
): Promise<void> {
  const listeners = [
    ['metrics', flags['allow-metrics'], flags['metrics-address'], flags['metrics-port']],
    ['http', flags['allow-http'], flags['http-address'], flags['http-port']],
    ['grpc', flags['allow-grpc'], flags['grpc-address'], flags['grpc-port']],
    ['console', page.port !== undefined, page.address, page.port ?? 0],
  ] as const
  // Held until the last is there: two flags may name one port.
  const held: Server[] = []
  try {
    for (const [listener, isAllowed, address, port] of listeners) {
      if (!isAllowed || port === 0) continue
      const server = createServer((socket) => socket.destroy())
      await namePortFlag(listener, () => listenOn(server, { address, port, onError: () => {} }))
      held.push(server)
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}
