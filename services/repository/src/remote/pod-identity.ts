import { type Clock, systemClock } from '@tutti/chassis'
import type { PodIdentity } from '../fetch/fetch-options.ts'
import { AwsRoles } from './aws-roles.ts'
import type { EnvironmentVariables } from './credential-file.ts'

const VARIABLES = [
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
]

/**
 * Finds the identity that a cluster has given to the pod at AWS, by the variables that its webhook has set. The role of the
 * machine is no pod's: a bucket that everybody may read is read without keys.
 */
export function awsPodIdentity(
  env: EnvironmentVariables,
  clock: Pick<Clock, 'epochMs'> = systemClock,
): PodIdentity | undefined {
  if (!VARIABLES.some((name) => env[name])) return undefined
  const roles = new AwsRoles({ env, clock })
  const region = env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || undefined
  return { region, keys: (context) => roles.keys(context, { region, isAws: false }) }
}
