import type { Executable } from '@tutti/chassis'
import { checkConsoleFlags } from '@tutti/console'
import { REFUSED_OVER_BROKERS } from '@tutti/server'
import { checkTlsFlags } from '@tutti/serving'
import { readMetricsFlags, readTraceFlags } from '@tutti/telemetry'
import { readBrokerFlags } from '@tutti/transport'
import manifest from '../../package.json' with { type: 'json' }
import { checkSources, ROUTER_FLAGS } from './router-flags.ts'
import { startRouter } from './start-router.ts'

/** The router as a program; `tutti router` and `tutti-router` are the same. */
export const routerExecutable: Executable<typeof ROUTER_FLAGS> = {
  name: 'tutti-router',
  version: manifest.version,
  usage: 'tutti router [--model-repository DIR | --kubernetes] --nats URL [FLAGS]',
  flags: ROUTER_FLAGS,
  refusedFlags: REFUSED_OVER_BROKERS,
  processFlags: (flags) => flags,
  check: (flags) => {
    checkSources(flags)
    checkTlsFlags(flags)
    checkConsoleFlags(flags)
    readMetricsFlags(flags)
    readTraceFlags(flags)
    readBrokerFlags(flags)
  },
  start: startRouter,
}
