import {
  createLogger,
  type FlagTable,
  parseFlags,
  renderHelp,
  type Surroundings,
  systemClock,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { createClient, createTransport } from '@tutti/kube'
import { loadOperatorConfig } from '../config.ts'
import { SERVING_FLAGS } from '../serving-flags.ts'
import { toAccess, USER_AGENT } from '../start-operator.ts'
import { removeRouterSets } from './remove-router-sets.ts'

/** The flags of `tutti-operator remove-router-sets`. */
export const REMOVAL_FLAGS = {
  'operator-deployment': {
    type: 'string',
    description: "Name of the operator's Deployment, in its own namespace.",
  },
  'watch-namespace': SERVING_FLAGS['watch-namespace'],
  'wait-secs': {
    type: 'int',
    min: 1,
    max: 3600,
    default: 120,
    unit: 's',
    description: "For the operator's pods to end, and for all of it.",
  },
} as const satisfies FlagTable

export const REMOVAL_COMMAND = 'remove-router-sets'

/**
 * Stops the operator and removes what nobody would without it. For the time before the release is uninstalled.
 *
 * @returns the exit code.
 * @throws ServeError FLAG_INVALID or SETTING_INVALID; KubeError.
 */
export async function runRemoval(
  argv: readonly string[],
  around: Pick<Surroundings, 'env' | 'out'>,
): Promise<number> {
  const { values: flags, help } = parseFlags(REMOVAL_FLAGS, argv)
  if (help) {
    const usage = `tutti-operator ${REMOVAL_COMMAND} --operator-deployment=NAME [FLAGS]`
    around.out(renderHelp({ usage, flags: REMOVAL_FLAGS }))
    return 0
  }
  const name = flags['operator-deployment']
  if (name === undefined) {
    throw new ServeError('FLAG_INVALID', '--operator-deployment: got none, want a name', {
      details: { field: '--operator-deployment' },
    })
  }
  const config = loadOperatorConfig(around.env)
  const [clock, log] = [systemClock, createLogger({ level: 'info', name: 'tutti-operator' })]
  const access = await toAccess(config, clock)
  const transport = createTransport(access, { clock, log, userAgent: USER_AGENT })
  const waitMs = flags['wait-secs'] * 1000
  try {
    await removeRouterSets({
      client: createClient(transport),
      operator: { namespace: config.podNamespace, name },
      namespaces: flags['watch-namespace'],
      waitMs,
      clock,
      log,
      signal: AbortSignal.timeout(2 * waitMs),
    })
    return 0
  } finally {
    await transport.close()
  }
}
