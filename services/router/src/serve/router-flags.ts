import { type FlagTable, type FlagValues, PROCESS_FLAGS } from '@tutti/chassis'
import { CONSOLE_FLAGS } from '@tutti/console'
import { ServeError } from '@tutti/errors'
import { CACHE_FLAGS } from '@tutti/response-cache'
import { POLL_FLAGS, SERVER_FLAGS } from '@tutti/server'
import { ACCESS_FLAGS } from '@tutti/serving'
import { METRICS_FLAGS, TRACE_FLAGS } from '@tutti/telemetry'
import { BROKER_FLAGS } from '@tutti/transport'
import { EDGE_FLAGS } from './edge-flags.ts'
import { NESTING_FLAGS } from './nesting-flags.ts'

/** The flags of `tutti-router` and `tutti router`. */
export const ROUTER_FLAGS = {
  'model-repository': {
    type: 'string',
    path: 'folder',
    repeatable: true,
    aliases: ['model-store'],
    description:
      'Folder that holds ensembles. The router ignores other models there. Repeat the flag for more.',
  },
  'model-config-name': {
    type: 'string',
    description: 'Read configs/NAME.pbtxt of a model instead of its config.pbtxt, if it exists.',
  },
  kubernetes: {
    type: 'bool',
    default: false,
    description:
      'Serve what the operator has accepted in the namespace of --repository-name, instead of repositories.',
  },
  'max-held-calls': {
    type: 'int',
    min: 1,
    max: 1_000_000,
    default: 1024,
    unit: 'calls',
    description:
      'With --kubernetes: calls that wait at the same time for the first pods of Models with minReplicas 0. Further calls fail at once.',
  },
  ...POLL_FLAGS,
  ...BROKER_FLAGS,
  'strict-readiness': {
    type: 'bool',
    default: true,
    description:
      'Ready only if every known model version is ready and no ensemble waits for a model. False: ready as soon as the server serves.',
  },
  ...NESTING_FLAGS,
  ...CACHE_FLAGS,
  ...SERVER_FLAGS,
  ...METRICS_FLAGS,
  ...TRACE_FLAGS,
  ...CONSOLE_FLAGS,
  ...ACCESS_FLAGS,
  ...EDGE_FLAGS,
  ...PROCESS_FLAGS,
} as const satisfies FlagTable

export type RouterFlags = FlagValues<typeof ROUTER_FLAGS>

/**
 * Checks that the flags name one source of what is served.
 *
 * @throws ServeError FLAG_INVALID if --kubernetes comes with a flag that chooses what is served, or --edge-secret-name without
 *   it.
 */
export function checkSources(flags: RouterFlags): void {
  checkEdgeSource(flags)
  if (!flags.kubernetes) return
  const given = [
    ['--model-repository', flags['model-repository'].length > 0],
    ['--model-config-name', flags['model-config-name'] !== undefined],
    ['--model-control-mode', flags['model-control-mode'] !== 'none'],
  ] as const
  for (const [field, isGiven] of given) {
    if (!isGiven) continue
    const text = `${field}: given with --kubernetes, want it without: there the operator says what is served`
    throw new ServeError('FLAG_INVALID', text, { details: { field } })
  }
}

function checkEdgeSource(flags: RouterFlags): void {
  if (flags['edge-secret-name'] === undefined) return
  const field = '--edge-secret-name'
  const refuse = (text: string): ServeError =>
    new ServeError('FLAG_INVALID', `${field}: ${text}`, { details: { field } })
  if (!flags.kubernetes) throw refuse('given without --kubernetes; want --edge-file there')
  if (flags['edge-file'] !== undefined) throw refuse('given with --edge-file; want one of them')
}
