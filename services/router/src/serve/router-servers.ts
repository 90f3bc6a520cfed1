import type { EdgeRoutes } from '@tutti/api'
import type { FlagValues } from '@tutti/chassis'
import { openServers, type Servers, type ServersOptions } from '@tutti/server'
import { type ACCESS_FLAGS, AccessFile, openTraces } from '@tutti/serving'
import { readTraceFlags, type TRACE_FLAGS } from '@tutti/telemetry'
import { EdgeFile } from './edge-file.ts'
import type { EdgeFlags } from './edge-flags.ts'

/**
 * Opens the servers that the flags allow, those for requests from outside if there are routes for them.
 *
 * @param o.opened - closes them.
 * @throws ServeError SETTING_INVALID if the file does not fit or an address is not to be had.
 */
export async function openRouterServers(
  o: Omit<ServersOptions, 'edge'> & {
    readonly flags: EdgeFlags & FlagValues<typeof ACCESS_FLAGS & typeof TRACE_FLAGS>
    /** Reads the routes of --edge-secret-name; undefined without that flag. */
    readonly edgeAccess: (() => EdgeRoutes) | undefined
    readonly opened: AsyncDisposableStack
  },
): Promise<Servers> {
  const { flags, opened, clock, log } = o
  const { 'edge-file': path } = flags
  const file = path === undefined ? undefined : await EdgeFile.open({ path, clock, log })
  opened.defer(async () => file?.close())
  const readAccess = o.edgeAccess ?? (file && (() => file.access))
  const edge = readAccess && {
    access: readAccess,
    address: flags['edge-address'],
    grpcPort: flags['edge-grpc-port'],
    httpPort: flags['edge-http-port'],
  }
  const access = await AccessFile.open({ flags, clock, log })
  opened.defer(async () => access?.close())
  const traces = openTraces(readTraceFlags(flags), { clock, log })
  opened.defer(async () => traces?.close())
  const servers = await openServers({
    ...o,
    edge,
    identities: access?.identities,
    ...(traces && { decorators: [traces.decorate], traceSettings: traces.settings }),
  })
  opened.defer(() => servers.close())
  return servers
}
