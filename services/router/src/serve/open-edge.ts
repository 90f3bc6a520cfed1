import type { Clock, Logger } from '@tutti/chassis'
import type { EdgeServersOptions } from '@tutti/server'
import type { EdgeSecret } from '../accepted/edge-secret.ts'
import { EdgeFile } from './edge-file.ts'
import type { EdgeFlags } from './edge-flags.ts'

/**
 * Opens the routes of requests from outside.
 *
 * @param o.secret - the Secret of --edge-secret-name; undefined without that flag.
 * @param o.opened - closes the file.
 * @returns the options of the servers; undefined if the flags name no routes.
 * @throws ServeError SETTING_INVALID if the file cannot be read or parsed.
 */
export async function openEdge(
  flags: EdgeFlags,
  o: {
    readonly secret: EdgeSecret | undefined
    readonly clock: Clock
    readonly log: Logger
    readonly opened: AsyncDisposableStack
  },
): Promise<EdgeServersOptions | undefined> {
  const { 'edge-file': path } = flags
  const { secret, clock, log, opened } = o
  const file = path === undefined ? undefined : await EdgeFile.open({ path, clock, log })
  opened.defer(async () => file?.close())
  const routes = secret ?? file
  return (
    routes && {
      access: () => routes.access,
      address: flags['edge-address'],
      grpcPort: flags['edge-grpc-port'],
      httpPort: flags['edge-http-port'],
    }
  )
}
