import { ALL_ADDRESSES, type FlagTable, type FlagValues, PROCESS_FLAGS } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { NATS_FLAGS } from './nats/nats-flags.ts'
import { checkCache, checkMetricsConfig, checkTelemetry, WORKLOAD_FLAGS } from './workload-flags.ts'

const PORT = { type: 'int', min: 0, max: 65_535 } as const
const SECONDS = { type: 'int', min: 1, max: 3600, unit: 's' } as const

/** The flags of the operator; those of the election are named as in Kubernetes' own controllers. */
export const OPERATOR_FLAGS = {
  'leader-elect': {
    type: 'bool',
    default: true,
    description: 'Acquire a Lease before the first write. False: no other operator may run.',
  },
  'leader-elect-resource-name': {
    type: 'string',
    default: 'tutti-operator',
    description: 'Name of the Lease.',
  },
  'leader-elect-lease-duration': {
    ...SECONDS,
    default: 15,
    description: 'Time without a renewal after which another process takes the Lease.',
  },
  'leader-elect-renew-deadline': {
    ...SECONDS,
    default: 10,
    description:
      'Time after which a leader that cannot renew its Lease exits. Must be below the lease duration.',
  },
  'leader-elect-retry-period': {
    ...SECONDS,
    default: 2,
    description: 'Time between two attempts. 1.2 times this must be below the renew deadline.',
  },
  'health-address': {
    type: 'string',
    default: ALL_ADDRESSES,
    description: 'Address of the probes.',
  },
  'health-port': {
    ...PORT,
    default: 8081,
    description: 'Port of `/livez` and `/readyz`; 0 takes any free port.',
  },
  'metrics-address': { type: 'string', default: ALL_ADDRESSES, description: 'Address of metrics.' },
  'metrics-port': {
    ...PORT,
    default: 8080,
    description: 'Port of `/metrics`; 0 takes any free port.',
  },
  ...WORKLOAD_FLAGS,
  ...NATS_FLAGS,
  ...PROCESS_FLAGS,
  'exit-timeout-secs': {
    ...PROCESS_FLAGS['exit-timeout-secs'],
    default: 25,
    description:
      'Time for reconciles in flight after SIGTERM or SIGINT. They are aborted after 80 % of it.',
  },
} as const satisfies FlagTable

export type OperatorFlags = FlagValues<typeof OPERATOR_FLAGS>

/**
 * Checks flags that depend on each other or go on to pods.
 *
 * @throws ServeError FLAG_INVALID if the times of the election do not fit one another, or pods would not start with a value.
 */
export function checkOperatorFlags(flags: OperatorFlags): void {
  for (const text of flags['metrics-config']) checkMetricsConfig(text)
  checkCache(flags)
  checkTelemetry(flags)
  const leaseS = flags['leader-elect-lease-duration']
  const renewS = flags['leader-elect-renew-deadline']
  const retryS = flags['leader-elect-retry-period']
  if (leaseS <= renewS) {
    throw refusal(
      'leader-elect-lease-duration',
      `${leaseS} s, want more than the renew deadline, ${renewS} s`,
    )
  }
  if (renewS <= 1.2 * retryS) {
    throw refusal(
      'leader-elect-renew-deadline',
      `${renewS} s, want more than 1.2 times the retry period, ${retryS} s`,
    )
  }
}

function refusal(flag: string, text: string): ServeError {
  return new ServeError('FLAG_INVALID', `flag --${flag}: ${text}`, {
    details: { field: `--${flag}` },
  })
}
